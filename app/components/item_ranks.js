// Items by the ranks that models give them: sorted by any model or by the mean, here in the browser. Python holds the table.
const sorted = new WeakMap() // the title of the model by which each table is sorted; none: the mean

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  root.report = setTriggerValue
  const draw = table => drawTable(table, root, parentElement)
  const { early: address, run, ...table } = data
  if (address) {
    early.address = address
    drawsEarly("lists", root, draw)
  }
  drawChanged(root, table, draw)
}

function drawTable(data, root, parentElement) {
  const report = act => (act.do === "add" ? edit(act, () => root.report("act", act)) : root.report("act", act))
  const frame = element("div", "ranks")
  frame.tabIndex = 0
  frame.setAttribute("role", "region")
  frame.setAttribute("aria-label", "Rank of each item in each model")
  const table = element("table")
  const head = table.createTHead().insertRow()
  const body = table.createTBody()
  const columns = [{ title: "Mean rank", note: data.mean }, ...data.models]
  const value = (row, column) => (column < 0 ? row.mean : (row.cells[column]?.rank ?? Infinity))
  const sort = column => {
    sorted.set(root, data.models[column]?.title)
    const rows = [...data.rows].sort((a, b) => value(a, column) - value(b, column) || a.mean - b.mean)
    body.replaceChildren(...rows.map(row => tableRow(row, data, report)))
    ;[...head.cells].slice(1).forEach((cell, place) => cell.setAttribute("aria-sort", place - 1 === column ? "ascending" : "none"))
  }
  head.append(header(element("span", "", "Item")))
  columns.forEach((column, place) => {
    const button = action("sort", "", `Sort by ${column.title}`)
    if (column.sign) button.append(sign(column))
    button.append(unbroken(element("span", "name"), column.title))
    button.title = column.note ?? ""
    button.onclick = () => sort(place - 1)
    head.append(header(button))
  })
  sort(data.models.findIndex(({ title }) => title === sorted.get(root))) // −1, the mean, where it is not shown any more
  frame.append(skip("Skip this table"), table, end("End of the table"))

  const status = parentElement.querySelector("[role=status]")
  const words = data.rows.length ? `First by mean rank: ${data.rows.slice(0, 3).map(called).join("; ")}` : "No model gives a list."
  if (status.textContent !== words) status.textContent = words
  const scrolled = root.querySelector(".ranks")
  const [top, left] = [scrolled?.scrollTop ?? 0, scrolled?.scrollLeft ?? 0]
  redraw(root, frame)
  frame.scrollTop = top
  frame.scrollLeft = left
}

function tableRow(item, data, report) {
  const row = element("tr")
  if (item.truth) row.classList.add("truth")
  if (item.chosen) row.classList.add("chosen")
  const title = titled(action("title", "", `Details: ${called(item)}`), item, "Details of this item")
  title.onclick = () => report({ do: "explain", id: item.id })
  const name = element("th")
  name.scope = "row"
  const words = element("div", "item")
  words.append(title)
  if (item.truth) words.append(element("span", "tag truth", "came next"))
  if (item.known) words.append(element("span", "tag", "in the history"))
  else {
    const add = action("add", "+", `Add to the history: ${called(item)}`)
    add.title = "Add to the history"
    add.onclick = once(() => report({ do: "add", id: item.id, known: item.known }))
    words.append(add)
  }
  name.append(words)
  row.append(name, element("td", "mean", item.mean.toFixed(1)))
  item.cells.forEach((cell, place) => {
    const field = element("td", "", cell?.words ?? "–")
    if (cell) {
      field.style.setProperty("--depth", `${Math.round(45 * Math.max(0, 1 - (cell.rank - 1) / data.k))}%`)
      field.title = cell.exact
      if (cell.moved) field.append(element("span", `tag moved ${cell.change}`, cell.moved))
    } else field.title = `Not in the first ${data.k} of ${data.models[place].title}`
    row.append(field)
  })
  return row
}

function header(content) {
  const cell = element("th")
  cell.scope = "col"
  cell.append(content)
  return cell
}
