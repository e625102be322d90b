// Copies an address. Where the browser has no clipboard for the page (plain http from another machine), the address is shown and
// selected, so that it can be copied by hand.
export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".copy")
  const [button, field, note] = ["button", "input", "p"].map(tag => root.querySelector(tag))
  button.querySelector("span").textContent = data.label
  button.title = data.help ?? ""
  field.setAttribute("aria-label", "Address")
  button.onclick = () => copy(true)
  field.onfocus = () => field.select()
  if (root.dataset.address !== data.address) {
    root.dataset.address = field.value = data.address
    note.textContent = ""
    field.hidden = !data.open
    if (data.open) copy(false) // the click that opened it still counts as one for the clipboard, for some seconds
  }

  async function copy(byClick) {
    const copied = await written(data.address)
    note.textContent = copied ? "Copied." : byClick || data.open ? "Select and copy it:" : ""
    if (copied) return
    field.hidden = false
    field.focus()
    field.select()
    if (byClick && byCommand()) note.textContent = "Copied."
  }
}

async function written(text) {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    return false // not allowed, or no such thing
  }
}

function byCommand() {
  try {
    return document.execCommand("copy")
  } catch {
    return false
  }
}
