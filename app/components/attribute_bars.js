// Bars of how many items have each value of an attribute, which filter by a click, and above them what is selected. Python counts.
const OPEN = 2 // attributes whose bars are open at first
const ROOM = 200 // pixels beside the points of a map that has room for the bars over it
const BELOW = matchMedia("(max-width: 640px)") // on a phone they stand below it, before the controls

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  const view = (root.view ??= { folded: null, open: new Map() }) // outlives an answer of Python; null: as there is room
  const focused = parentElement.activeElement?.dataset.key
  const act = values => setTriggerValue("act", values)

  const body = element("div", "body")
  if (data.selection) body.append(listed(data.selection))
  if (data.filtered) body.append(button("Clear filters", "clear", { do: "clear" }))
  data.attributes.forEach((attribute, place) => body.append(bars(attribute, place)))

  const fold = element("button", "fold")
  fold.dataset.key = "fold"
  const panel = element("section", "panel")
  panel.setAttribute("aria-label", "Attributes of the items on the map")
  panel.append(fold)
  if (data.selection) panel.append(selection(data.selection))
  panel.append(legend(), body)
  const map = (parentElement.host ?? parentElement).closest(".st-key-map_maps")
  const hides = () => {
    const chart = map?.querySelector(".stPlotlyChart, [data-testid=stSkeleton]") // its place, too, while it loads
    return data.maps > 1 || (chart && chart.offsetWidth - chart.offsetHeight * data.aspect < ROOM)
  }
  const folded = () => view.folded ?? (BELOW.matches || hides())
  root.classList.toggle("two", data.maps > 1)
  const arrange = () => {
    fold.textContent = folded() ? "Attributes" : "Hide"
    fold.setAttribute("aria-expanded", String(!folded()))
    panel.classList.toggle("folded", folded())
  }
  fold.onclick = () => {
    view.folded = !folded()
    arrange()
  }
  arrange()
  root.watching?.disconnect()
  root.watching = new ResizeObserver(arrange)
  if (map) root.watching.observe(map)
  const scrolled = root.querySelector(".body")?.scrollTop ?? 0
  root.replaceChildren(panel)
  body.scrollTop = scrolled
  if (focused) [...root.querySelectorAll("button")].find(({ dataset }) => dataset.key === focused)?.focus({ preventScroll: true })
  return () => root.watching.disconnect()

  function button(words, key, values) {
    const made = element("button", "action", words)
    made.dataset.key = key
    made.onclick = () => act(values)
    return made
  }

  // What the colours of points stand for, while the bars are folded away.
  function legend() {
    const part = element("div", "legend")
    const key = (row, colour) => {
      row.className = "key"
      row.dir = "auto"
      row.style.setProperty("--colour", colour)
      part.append(row)
    }
    for (const { name, values, rest } of data.attributes) {
      for (const { value, colour, pressed } of values.filter(({ legend }) => legend)) {
        const row = button(value, `legend ${value}`, { do: "filter", name, value })
        row.setAttribute("aria-pressed", String(pressed))
        row.title = pressed ? "Show the others again" : "Show these alone"
        key(row, colour)
      }
      for (const { value, colour } of rest) key(element("span", "", value), colour)
    }
    part.classList.toggle("filtered", data.filtered)
    if (data.filtered) part.append(button("Clear filters", "legend clear", { do: "clear" }))
    return part
  }

  // What is selected, and what can be done with it: while the bars are folded away as well.
  function selection({ words, isolated }) {
    const part = element("div", "selection")
    const actions = element("div", "actions")
    actions.append(
      button(isolated ? "Show all" : "Isolate", "isolate", { do: "isolate" }),
      button("Zoom", "zoom", { do: "zoom" }),
      button("Deselect", "deselect", { do: "deselect" }),
    )
    part.append(element("h2", "", words), actions)
    return part
  }

  function listed({ items, more, held }) {
    const part = element("div", "listed")
    const list = element("ol")
    for (const { id, title } of items) {
      const item = element("li")
      const open = button(title, `item ${id}`, { do: "item", id })
      open.className = "item"
      open.dir = "auto"
      item.append(open)
      list.append(item)
    }
    part.append(list)
    if (more) part.append(element("p", "note", `and ${more.toLocaleString("en")} more, in the table below the map`))
    if (held) part.append(element("p", "note", "Too long for a link: a reload forgets this selection."))
    return part
  }

  function bars({ name, title, values, more }, place) {
    const part = element("details")
    part.open = view.open.get(name) ?? place < OPEN
    part.ontoggle = () => view.open.set(name, part.open)
    part.append(element("summary", "", title))
    const most = Math.max(1, ...values.map(({ of }) => of))
    for (const { value, items, of, pressed, colour } of values) {
      const row = element("button", "row")
      row.dataset.key = `${name} ${value}`
      row.setAttribute("aria-pressed", String(pressed))
      row.setAttribute("aria-label", `${value}: ${items.toLocaleString("en")} of ${of.toLocaleString("en")} ${of === 1 ? "item" : "items"}`)
      row.onclick = () => act({ do: "filter", name, value })
      const track = element("span", "track")
      for (const [kind, many] of [["of", of], ["items", items]]) {
        const bar = element("span", kind)
        bar.style.width = `${(100 * many) / most}%`
        if (colour) bar.style.backgroundColor = colour
        track.append(bar)
      }
      const label = element("span", "label", value)
      label.dir = "auto"
      row.append(label, element("span", "count", items.toLocaleString("en")), track)
      part.append(row)
    }
    if (more) part.append(element("p", "note", `and ${more.toLocaleString("en")} rarer ${more === 1 ? "one" : "ones"}`))
    return part
  }
}
