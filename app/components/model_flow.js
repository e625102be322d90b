// How each model comes from the history to its list: boxes in a row, below one another on a phone. Texts only.
export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root")
  root.replaceChildren(...(data?.models ?? []).map(flow))
}

function flow(model) {
  const row = element("section", "flow")
  const name = element("h2")
  name.append(sign(model), element("span", "", model.title))
  const list = element("ol")
  list.style.setProperty("--colour", model.colour)
  for (const step of model.steps) {
    const box = element("li")
    box.append(element("strong", "", step.title), element("span", "", step.detail))
    list.append(box)
  }
  row.append(name, list)
  return row
}
