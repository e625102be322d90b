// Rows with a model's rank in each column, darker the higher it ranks. Python holds, sorts and pages them; this draws and reports clicks.
export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root")
  const table = element("table")
  table.append(element("caption", "", data.label), heads(data, setTriggerValue))
  const body = element("tbody")
  for (const row of data.rows) body.append(line(row, data, setTriggerValue, parentElement))
  table.append(body)
  redraw(root, table)
}

function heads(data, report) {
  const head = element("tr")
  for (const column of data.columns) {
    const cell = element("th", column.wide ? "wide" : "")
    cell.scope = "col"
    if (data.sort === column.by) cell.setAttribute("aria-sort", data.falling ? "descending" : "ascending")
    if (column.by) {
      const button = element("button", "sort")
      button.type = "button"
      button.title = column.help ?? ""
      button.setAttribute("aria-label", `Sort by ${column.title}`)
      if (column.sign) {
        const sign = element("span", "sign", column.sign)
        sign.style.color = column.colour
        sign.setAttribute("aria-hidden", "true")
        button.append(sign)
      }
      button.append(element("span", "", column.title))
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
      const button = element("button", "name")
      button.append(value.text, element("span", "detail", row.detail))
      button.type = "button"
      button.setAttribute("aria-label", value.text)
      button.setAttribute("aria-pressed", row.id === data.chosen)
      button.onclick = choose
      cell.append(button)
    } else if (column.text) cell.append(element("span", "", value.text))
    else cell.append(...marked(value))
    if (value.shade) cell.style.setProperty("--shade", `${Math.round(45 * value.shade)}%`)
    if (value.help) cell.title = value.help
    made.append(cell)
  }
  const open = element("button", "open", "→")
  open.type = "button"
  open.title = data.action
  open.setAttribute("aria-label", `${data.action}: ${row.cells[0].text}`)
  open.onclick = () => report("act", { do: "open", id: row.id })
  const cell = element("td")
  cell.append(open)
  made.append(cell)
  return made
}

function marked(value) {
  if (!value.sign) return [value.text]
  const sign = element("span", "sign", value.sign)
  sign.style.color = value.colour
  return [sign, " ", value.text]
}
