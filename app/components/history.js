// An ordered list whose entries can be moved and removed. Python holds the list; this draws it and reports clicks.
const again = new WeakMap() // which button to focus after the list was drawn anew, so that the keyboard does not lose its place

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  const items = data?.items ?? []
  if (items.length === 0) {
    root.replaceChildren(element("div", "empty", data?.empty ?? ""))
    return
  }
  const list = element("ol", "history")
  list.tabIndex = -1
  items.forEach((item, place) => {
    const row = element("li")
    const words = element("span", "title", item.title)
    if (item.detail) words.append(" ", element("span", "detail", item.detail))
    const buttons = element("span", "buttons")
    const button = (sign, act, name, next, disabled) => {
      const made = element("button", act, sign)
      made.type = "button"
      made.title = name
      made.setAttribute("aria-label", `${name}: ${item.title}`)
      made.disabled = disabled
      made.onclick = () => {
        again.set(root, [act, next])
        setTriggerValue("act", { do: act, place, id: item.id })
      }
      buttons.append(made)
    }
    button("↑", "up", "Move earlier", place - 1, place === 0)
    button("↓", "down", "Move later", place + 1, place === items.length - 1)
    button("✕", "remove", "Remove", place, false)
    row.append(element("span", "place", String(place + 1)), words, buttons)
    list.append(row)
  })
  const before = root.querySelector("ol")
  const stays = before && before.children.length >= items.length
  const scrolled = before?.scrollTop
  root.replaceChildren(list)
  list.scrollTop = stays ? scrolled : list.scrollHeight // the newest is last

  const [act, place] = again.get(root) ?? []
  if (act) {
    again.delete(root)
    const row = list.children[Math.min(Math.max(place, 0), items.length - 1)]
    const wanted = row.querySelector(`button.${act}:not(:disabled)`) ?? row.querySelector("button:not(:disabled)")
    wanted?.focus()
  }
}

function element(tag, name, text) {
  const made = document.createElement(tag)
  if (name) made.className = name
  if (text !== undefined) made.textContent = text
  return made
}
