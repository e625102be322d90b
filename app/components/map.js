// What lies over a Plotly map: the names of regions, as many as there is room for. Tells Python which part of the map is on the
// screen, so that a map that has to be drawn anew can show it again.
const QUIET = 350 // ms without a further move before Python hears of it
const APART = 10 // pixels between names
const MARK = 10 // pixels around the middle of what stands out
const CLOSE = 0.6 // of the whole map's width on the screen, from which the names of fine regions come as well

export default function ({ data, parentElement, setStateValue }) {
  const root = parentElement.querySelector(".root")
  root.stop?.() // Streamlit calls this again when the data change, and does not stop what ran before
  let plot = null
  let waiting = null
  let frame = 0

  const names = data.names.map(([x, y, level, text]) => {
    const name = document.createElement("span")
    name.textContent = text
    name.dir = "auto"
    return { x, y, level, name }
  })
  root.replaceChildren(...names.map(({ name }) => name))
  const sizes = names.map(({ name }) => [name.offsetWidth + APART, name.offsetHeight + APART])

  // Where a point of the map is on the screen, while it is dragged as well.
  const scale = axis => {
    const [low, high] = axis.range
    return value => axis._offset + ((axis === plot._fullLayout.yaxis ? high - value : value - low) / (high - low)) * axis._length
  }
  const draw = () => {
    frame = 0
    const { xaxis, yaxis } = plot?._fullLayout ?? {}
    if (!xaxis?.range || !yaxis?.range) return
    const around = root.getBoundingClientRect()
    const figure = plot.getBoundingClientRect()
    const [left, top] = [figure.x - around.x, figure.y - around.y]
    const [across, down] = [scale(xaxis), scale(yaxis)]
    const fine = xaxis.range[1] - xaxis.range[0] < CLOSE * data.width
    const boxes = plot._fullData
      .filter(trace => trace.meta === "mark")
      .flatMap(({ x, y }) => Array.from(x, (value, place) => [across(value), down(y[place])]))
      .map(([x, y]) => [x - MARK, y - MARK, x + MARK, y + MARK])
    names.forEach(({ x, y, level, name }, place) => {
      const [width, height] = sizes[place]
      const box = [across(x) - width / 2, down(y) - height / 2, across(x) + width / 2, down(y) + height / 2]
      const free = !boxes.some(other => box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3])
      const inside = box[0] > xaxis._offset && box[2] < xaxis._offset + xaxis._length && box[1] > yaxis._offset && box[3] < yaxis._offset + yaxis._length
      if (free && (level === 0 || fine)) boxes.push(box)
      name.hidden = !free || !inside || (level > 0 && !fine)
      name.style.translate = `${left + box[0] + APART / 2}px ${top + box[1] + APART / 2}px`
    })
  }
  const redraw = () => (frame ||= requestAnimationFrame(draw))

  const report = () => {
    const layout = plot?._fullLayout
    if (!layout?.xaxis?.range || !layout?.yaxis?.range) return
    setStateValue("view", [...layout.xaxis.range, ...layout.yaxis.range, layout.height].map(Number))
  }
  const moved = event => {
    redraw()
    if (!Object.keys(event ?? {}).some(name => /^[xy]axis\.(range|autorange)/.test(name))) return
    clearTimeout(waiting)
    waiting = setTimeout(report, QUIET)
  }
  const handlers = { plotly_relayout: moved, plotly_relayouting: redraw, plotly_afterplot: redraw }
  const detach = () => {
    for (const [event, handler] of Object.entries(handlers)) plot?.removeListener?.(event, handler)
  }
  const attach = () => {
    const chart = document.querySelector(`.st-key-${CSS.escape(data.chart)} .js-plotly-plot`)
    if (chart === plot || typeof chart?.on !== "function") return
    detach()
    plot = chart
    for (const [event, handler] of Object.entries(handlers)) plot.on(event, handler)
    redraw()
  }
  attach()
  const watching = setInterval(attach, 400) // Streamlit replaces a figure whenever its data change
  root.stop = () => {
    clearInterval(watching)
    clearTimeout(waiting)
    cancelAnimationFrame(frame)
    detach()
  }
  return root.stop
}
