// Tells Python which part of a Plotly figure is on the screen, so that a figure that has to be drawn anew can show it again.
const QUIET = 350 // ms without a further move before Python hears of it

export default function ({ data, setStateValue }) {
  let plot = null
  let waiting = null

  const report = () => {
    const layout = plot?._fullLayout
    if (!layout?.xaxis?.range || !layout?.yaxis?.range) return
    setStateValue("view", [...layout.xaxis.range, ...layout.yaxis.range].map(Number))
  }
  const moved = event => {
    if (!Object.keys(event ?? {}).some(name => /^[xy]axis\.(range|autorange)/.test(name))) return
    clearTimeout(waiting)
    waiting = setTimeout(report, QUIET)
  }
  const attach = () => {
    const found = document.querySelector(`.st-key-${CSS.escape(data.chart)} .js-plotly-plot`)
    if (found === plot || typeof found?.on !== "function") return
    plot = found
    plot.on("plotly_relayout", moved)
  }
  attach()
  const watching = setInterval(attach, 400) // Streamlit replaces a figure whenever its data change
  return () => {
    clearInterval(watching)
    clearTimeout(waiting)
    plot?.removeListener?.("plotly_relayout", moved)
  }
}
