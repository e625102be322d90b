
// --- for all components: this stands behind the script of each (widgets.py). Texts only, never HTML.

function element(tag, name, text) {
  const made = document.createElement(tag)
  if (name) made.className = name
  if (text !== undefined && text !== null) made.textContent = text
  return made
}

// A button. label: what it does, for those who do not see it; focus: what it is found by when it was drawn anew.
function action(name, text, label, focus) {
  const made = element("button", name, text)
  made.type = "button"
  if (label) made.setAttribute("aria-label", label)
  if (focus) made.dataset.focus = focus
  return made
}

// An item as labels name it: films of two years have one title.
function called(item) {
  return [item.title, item.detail].filter(Boolean).join(" ")
}

// For a button that adds: the second click of a double click does nothing. What it would add may stand elsewhere by then.
function once(act) {
  return event => event.detail > 1 || act()
}
