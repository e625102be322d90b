
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

// The sign of a model in its colour. hidden: from those who do not see it, as its title stands beside it.
function sign(model, hidden = true) {
  const made = element("span", "sign", model.sign)
  made.style.color = model.colour
  if (hidden) made.setAttribute("aria-hidden", "true")
  return made
}

// An item as labels name it: films of two years have one title.
function called(item) {
  return [item.title, item.detail].filter(Boolean).join(" ")
}

// A title whose words are not broken at their hyphens, SASRec-CE, unless one is very long.
function unbroken(node, title) {
  for (const word of title.split(" "))
    node.append(node.hasChildNodes() ? " " : "", element("span", word.length > 20 ? "" : "unbroken", word))
  return node
}

const LONG_TITLE = 72 // characters: in the narrowest list, of six, more take over five lines

// Writes the title of an item into `node`: of a very long one the first lines, and all of it where the pointer rests. does: what a
// click does.
function titled(node, item, does = "") {
  const whole = called(item)
  const long = whole.length > LONG_TITLE
  const words = long ? element("span", "long") : node
  words.append(item.title)
  if (item.detail) words.append(" ", element("span", "detail", item.detail))
  if (long) node.append(words)
  const tip = [long && whole, does].filter(Boolean).join(" · ")
  if (tip) node.title = tip
  return node
}

// For a button that adds: the second click of a double click does nothing. What it would add may stand elsewhere by then.
function once(act) {
  return event => event.detail > 1 || act()
}

// For a keyboard, past what holds many buttons: seen while it has the focus, it leads to the next of its kind or to the `end`.
function skip(text, label = text) {
  const button = action("skip", text, label)
  button.onclick = () => {
    const stops = [...button.getRootNode().querySelectorAll(".skip, .end")]
    const next = stops[stops.indexOf(button) + 1]
    next.tabIndex = 0 // from what cannot be tabbed to Chromium goes to the component's first button, where none comes after it
    next.focus()
  }
  return button
}

function end(words) {
  const mark = element("span", "end", words)
  mark.onblur = () => (mark.tabIndex = -1)
  return mark
}

// Puts what was drawn anew in its place. The button that had the focus keeps it; where it is gone, the one of its kind that stands there.
function redraw(root, made) {
  const active = root.getRootNode().activeElement
  const alike = active?.className ? `button.${active.className}` : "button"
  const place = [...root.querySelectorAll(alike)].indexOf(active)
  root.replaceChildren(made)
  if (place < 0) return
  const others = made.querySelectorAll(alike)
  const same = made.querySelector(`[aria-label="${CSS.escape(active.getAttribute("aria-label"))}"]`)
  ;(same ?? others[Math.min(place, others.length - 1)])?.focus({ preventScroll: true })
}

// Draws data in `root`, unless that is what it shows.
function drawChanged(root, data, draw) {
  const text = JSON.stringify(data)
  if (root.shown === text) return
  root.shown = text
  draw(data)
}

// --- an edit of the history is answered, and drawn, before the page is run (app/server/early.py)

const SOON = 500 // ms that the answer may take: then the page is run without it
const LATE = 3_000 // ms that a run may take to draw the history: then the next edit is told all the same
// Of all components together: the address of the answers, how each part of them is drawn, how many parts and how many histories runs
// have drawn, and when the next edit may be told.
const early = (window.seqscopeEarly ??= { address: "", parts: {}, runs: 0, histories: 0, turn: Promise.resolve() })

// name: of the part of an answer that `draw` draws in `root`.
function drawsEarly(name, root, draw) {
  early.runs += 1
  early.histories += name === "chips"
  early.parts[name] = { root, draw: data => root.isConnected && drawChanged(root, data, draw) }
}

// act: what edits the history; tell: tells Streamlit of it, whose run draws the whole page.
function edit(act, tell) {
  early.turn = early.turn.then(async () => {
    const { address, parts } = early
    early.address = "" // it answers for the history that was
    if (address && parts.lists?.root.isConnected) {
      const over = new AbortController()
      // of a click on something else Streamlit is told at once, and the edit came before it
      const pressed = new Promise(done => window.addEventListener("pointerdown", done, { capture: true, signal: over.signal }))
      await Promise.race([drawAnswer(address, act).catch(() => {}), pressed])
      over.abort()
    }
    const { histories } = early
    tell()
    // Streamlit keeps one edit for its next run: another one, told before that has read it, would take its place
    const end = Date.now() + LATE
    while (parts.chips?.root.isConnected && early.histories === histories && Date.now() < end)
      await new Promise(done => setTimeout(done, 20))
  })
}

async function drawAnswer(address, act) {
  const { runs } = early
  const words = encodeURIComponent(JSON.stringify(act))
  const answer = await fetch(`${address}?act=${words}`, { signal: AbortSignal.timeout(SOON) })
  if (!answer.ok) return
  const parts = Object.entries(await answer.json())
  if (early.runs !== runs) return // a run of another edit came meanwhile, which this one does not know
  for (const [name, data] of parts) early.parts[name]?.draw(data)
  // once that is on the screen; a tab that nobody looks at has no frames
  await new Promise(done => (requestAnimationFrame(() => setTimeout(done)), setTimeout(done, 100)))
}
