// Words shaded by weight, with the number beneath those that have one percent or more, and the number of each as its tooltip. Python counts; this draws.
export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root")
  const list = element("ol")
  list.setAttribute("aria-label", data?.label ?? "")
  for (const item of data?.items ?? []) {
    const card = element("li")
    const heading = element("p", "heading")
    heading.append(element("span", "number", item.number), element("bdi", "title", item.title), share(item.share))
    card.append(heading)
    for (const line of item.lines) {
      const row = element("div", "line")
      const name = element("div", "name")
      name.append(...(line.name.length ? line.name.map(word) : [element("span", "bare", line.attribute)]))
      const value = element("div", "value")
      value.dir = "auto"
      value.append(...line.value.map(word))
      if (line.cut && line.value.length) value.append(element("span", "cut", `… ${line.cut}`))
      row.append(name, value, share(line.share))
      if (line.name.length || line.value.length) card.append(row)
    }
    if (item.unread) card.append(element("p", "unread", `${item.unread} ${item.unread === 1 ? "word" : "words"} not read`))
    list.append(card)
  }
  root.replaceChildren(list)

  function word(part) {
    const made = element("span", "word")
    made.style.backgroundColor = `color-mix(in srgb, ${data.colour} ${Math.round(50 * part.strength)}%, transparent)`
    made.title = part.label
    made.append(element("bdi", "", part.text))
    if (part.share >= 0.01) made.append(" ", element("small", "", percent(part.share)))
    return made
  }
}

function share(value) {
  return element("span", "share", value > 0 && value < 0.01 ? "<1%" : percent(value))
}

function percent(value) {
  return `${Math.round(100 * value)}%`
}
