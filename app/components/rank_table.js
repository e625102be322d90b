// Rows with a model's rank in each column, darker the higher it ranks. Python holds, sorts and pages them; this draws and reports clicks.
export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  const table = element("table")
  table.append(element("caption", "unseen", data.label), heads(data, setTriggerValue))
  const body = element("tbody")
  for (const row of data.rows) body.append(line(row, data, setTriggerValue, parentElement))
  table.append(body)
  const frame = element("div", "frame")
  frame.append(skip("Skip this table"), table, end("End of the table"))
  redraw(root, frame)
}

function heads(data, report) {
  const head = element("tr")
  for (const column of data.columns) {
    const cell = element("th", column.wide ? "wide" : "")
    cell.scope = "col"
    if (data.sort === column.by) cell.setAttribute("aria-sort", data.falling ? "descending" : "ascending")
    if (column.by) {
      const button = action("sort", "", `Sort by ${column.title}`)
      button.title = column.help ?? ""
      if (column.sign) button.append(sign(column))
      button.append(unbroken(element("span"), column.title))
      button.onclick = () => report("act", { do: "sort", by: column.by })
      cell.append(button)
    } else cell.append(element("span", "plain", column.title))
    head.append(cell)
  }
  const last = element("th")
  last.append(element("span", "unseen", data.action))
  head.append(last)
  const group = element("thead")
  group.append(head)
  return group
}

function line(row, data, report, parentElement) {
  const made = element("tr", row.id === data.chosen ? "chosen" : "")
  const choose = () => {
    report("act", { do: "choose", id: row.id })
    if (window.innerWidth <= 640) // what it opens is below the table there, and drawn anew first
      setTimeout(() => {
        const opened = parentElement.ownerDocument.querySelector(`.st-key-${data.opens}`)
        if (!opened) return
        opened.style.scrollMarginTop = "4.5rem" // the page's own head stays above it
        opened.scrollIntoView()
      }, 700)
  }
  made.onclick = (event) => event.target.closest("button") || choose()
  for (const [at, value] of row.cells.entries()) {
    const column = data.columns[at]
    const cell = element(at ? "td" : "th", [column.wide && "wide", column.number && "number", column.text && "text"].filter(Boolean).join(" "))
    if (!at) {
      cell.scope = "row"
      const button = action("name", value.text, value.text)
      button.append(element("span", "detail", row.detail))
      button.setAttribute("aria-pressed", row.id === data.chosen)
      button.onclick = choose
      cell.append(button)
    } else if (column.text) cell.append(element("span", "", value.text))
    else if (value.sign) cell.append(sign(value, false), " ", value.text)
    else cell.append(value.text)
    if (value.shade) cell.style.setProperty("--shade", `${Math.round(45 * value.shade)}%`)
    if (value.help) cell.title = value.help
    made.append(cell)
  }
  const open = action("open", "→", `${data.action}: ${row.cells[0].text}`)
  open.title = data.action
  open.onclick = () => report("act", { do: "open", id: row.id })
  const cell = element("td")
  cell.append(open)
  made.append(cell)
  return made
}
