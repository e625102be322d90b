// A history as a row of chips, oldest first. Python holds it; this draws it and reports what is to be moved, removed or looked at. What is
// pointed at among its items, or in a figure whose rows or columns are its items, is lit in both.
const DRAG = 5 // px that the pointer moves before a press is a drag
// Where the keyboard is once an edit is drawn: which button, of which chip, and the id of its item. What is drawn before knows nothing of it.
const again = new WeakMap()

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  root.report = setTriggerValue
  const draw = chips => drawChips(chips, root)
  drawsEarly("chips", root, draw)
  const { run, ...chips } = data
  drawChanged(root, chips, draw)
}

function drawChips(data, root) {
  root.linked?.abort() // Streamlit calls this again when the data change, and does not stop what ran before
  root.linked = new AbortController()
  const items = data?.items ?? []
  const focused = root.contains(root.getRootNode().activeElement)
  const [name, place, id] = again.get(root) ?? []
  if (items.length === 0) {
    const words = element("div", "empty", data?.empty ?? "")
    words.tabIndex = -1
    root.replaceChildren(words)
    if (focused) words.focus({ preventScroll: true })
    return
  }
  const list = element("ol", "history")
  list.tabIndex = -1
  list.setAttribute("aria-label", data.label)
  const act = (name, place, more, focus) => {
    if (focus) again.set(root, focus)
    const act = { do: name, place, id: items[place].id, ...more }
    if (name === "select") return root.report("act", act)
    root.shown = null // a chip that was dragged stands elsewhere: what comes is drawn, even where it is the same
    edit(act, () => root.report("act", act))
  }
  const move = (place, to, focus) => {
    const end = Math.min(Math.max(to, 0), items.length - 1)
    if (end !== place) act("move", place, { to: end }, focus && ["move", end, items[place].id])
  }
  const removed = (place, button) => {
    const next = (items[place + 1] ?? items[place - 1])?.id
    act("remove", place, {}, [button, Math.min(place, items.length - 2), next])
  }
  items.forEach((item, place) => {
    const chip = element("li")
    const grip = action("move", String(place + 1), `Move: ${called(item)}`)
    grip.title = "Drag, or use the arrow keys, to move; Delete removes"
    grip.setAttribute("aria-keyshortcuts", "ArrowLeft ArrowRight Home End Delete")
    grip.onkeydown = event => {
      const to = { ArrowLeft: place - 1, ArrowUp: place - 1, ArrowRight: place + 1, ArrowDown: place + 1, Home: 0, End: items.length - 1 }
      if (event.key in to) move(place, to[event.key], true)
      else if (event.key === "Delete" || event.key === "Backspace") removed(place, "move")
      else return
      event.preventDefault()
    }
    const title = action("title", item.title, `Details: ${called(item)}`)
    title.title = "Details of this item"
    title.dir = "auto"
    title.onclick = () => act("select", place)
    if (item.detail) title.append(" ", element("span", "detail", item.detail))
    const remove = action("remove", "✕", `Remove: ${called(item)}`)
    remove.title = "Remove"
    remove.onclick = () => removed(place, "remove")
    chip.append(grip, title, remove)
    draggable(chip, list, to => move(place, to))
    list.append(chip)
  })
  const before = root.querySelector("ol")
  const stays = before && before.children.length >= items.length
  const scrolled = before?.scrollTop
  redraw(root, list)
  link(list, items, root.linked.signal)
  list.scrollTop = stays ? scrolled : list.scrollHeight // the newest is last
  if (!focused || !name || items[place]?.id !== id) return
  again.delete(root)
  list.children[place].querySelector(`button.${name}`).focus({ preventScroll: true })
}

// The chip follows the pointer through the list; drop is called with its new place. The list listens, since a node that is moved in
// the document loses the pointer.
function draggable(chip, list, drop) {
  chip.onpointerdown = ({ button, target, clientX, clientY, pointerId, pointerType }) => {
    // a finger that begins on a title scrolls
    if (button !== 0 || target.closest(".remove") || (pointerType !== "mouse" && !target.closest(".move"))) return
    const order = [...list.children]
    let dragged = false
    list.onpointermove = event => {
      if (!dragged && Math.hypot(event.clientX - clientX, event.clientY - clientY) < DRAG) return
      if (!dragged) list.setPointerCapture(pointerId)
      dragged = true
      chip.classList.add("dragged")
      const now = [...list.children]
      const over = now.find(other => other !== chip && contains(other.getBoundingClientRect(), event))
      if (!over) return
      const { left, width } = over.getBoundingClientRect()
      const forward = now.indexOf(over) > now.indexOf(chip)
      const next = chip.nextSibling
      over.insertAdjacentElement(forward ? "afterend" : "beforebegin", chip)
      // back where neither its middle is passed nor the chip has come to the pointer: chips of different widths would change places for ever
      if (event.clientX > left + width / 2 !== forward && !contains(chip.getBoundingClientRect(), event)) list.insertBefore(chip, next)
    }
    const end = dropped => {
      list.onpointermove = list.onpointerup = list.onpointercancel = null
      chip.classList.remove("dragged")
      if (!dragged) return
      if (dropped) drop([...list.children].indexOf(chip))
      else list.replaceChildren(...order)
    }
    list.onpointerup = () => end(true)
    list.onpointercancel = () => end(false)
  }
}

function contains(box, { clientX, clientY }) {
  return clientX >= box.left && clientX <= box.right && clientY >= box.top && clientY <= box.bottom
}

// Figures say in layout.meta which event each row is, and each column, of those that are ("3 · Alien"; of one of its codes "3b · Alien").
function link(list, items, signal) {
  const events = items.map(({ event }, place) => `${place + 1} · ${event}`)
  let last = ""
  const point = (row, column) => {
    if (last === (last = `${row}\n${column}`)) return
    document.querySelectorAll(".js-plotly-plot").forEach(plot => plot.layout?.meta?.rows && frame(plot, row, column))
    const lit = [row, column].map(eventOf)
    events.forEach((event, place) => list.children[place].classList.toggle("lit", lit.includes(event)))
  }
  const chip = ({ target }) => {
    const event = events[[...list.children].indexOf(target.closest("li"))]
    point(event, event)
  }
  list.addEventListener("pointerover", chip)
  list.addEventListener("focusin", chip)
  list.addEventListener("focusout", () => point())
  const move = ({ target, clientX, clientY }) => {
    const plot = target.closest?.(".js-plotly-plot")
    const { rows, columns } = plot?.layout?.meta ?? {}
    if (!rows) return list.matches(":hover, :focus-within") || point()
    const { left, top } = plot.getBoundingClientRect()
    const at = (axis, pixel) => Math.round(axis.p2l(pixel - axis._offset))
    point(rows[at(plot._fullLayout.yaxis, clientY - top)], columns?.[at(plot._fullLayout.xaxis, clientX - left)])
  }
  document.addEventListener("pointermove", move, { signal })
}

// Frames a row and a column of a figure, their labels included.
function frame(plot, row, column) {
  plot.querySelectorAll(".lit").forEach(old => old.remove())
  const { xaxis, yaxis } = plot._fullLayout
  const add = (names, axis, name, style) => {
    const places = (names ?? []).flatMap((other, place) => (other === name || eventOf(other) === name ? [place] : []))
    if (!places.length) return
    const ends = [places[0] - 0.5, places.at(-1) + 0.5].map(place => axis._offset + axis.l2p(place))
    const band = element("i", "lit")
    Object.assign(band.style, style(`${Math.min(...ends)}px`, `${Math.abs(ends[1] - ends[0])}px`))
    plot.querySelector(".svg-container").append(band)
  }
  const { rows, columns } = plot.layout.meta
  const width = columns ? `${xaxis._offset + xaxis._length}px` : "100%" // bars have their numbers behind them
  add(rows, yaxis, row, (top, height) => ({ top, height, left: 0, width }))
  add(columns, xaxis, column, (left, width) => ({ left, width, top: `${yaxis._offset}px`, bottom: 0 }))
}

const eventOf = name => name?.replace(/^(\d+)\S* · /, "$1 · ")
