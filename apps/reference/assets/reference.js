// Copies examples, filters the contents, and opens them on wide screens. Every page works without it.
const menu = document.querySelector('.menu')
const wide = matchMedia('(min-width: 60rem)')

function openWhenWide() {
  if (wide.matches) menu?.setAttribute('open', '')
  else menu?.removeAttribute('open')
}

function addCopyButton(pre) {
  const button = document.createElement('button')
  button.type = 'button'
  button.className = 'copy'
  button.textContent = 'Copy'
  button.addEventListener('click', () => {
    void navigator.clipboard.writeText(pre.textContent).then(() => {
      button.textContent = 'Copied'
      setTimeout(() => (button.textContent = 'Copy'), 1500)
    })
  })
  const frame = document.createElement('div')
  frame.className = 'copyable'
  pre.replaceWith(frame)
  frame.append(pre, button)
}

function addFilter(contents) {
  const box = document.createElement('input')
  box.type = 'search'
  box.className = 'filter'
  box.placeholder = 'Filter'
  box.setAttribute('aria-label', 'Filter the contents')
  box.addEventListener('input', () => {
    const words = box.value.toLowerCase().split(/\s+/)
    for (const item of contents.querySelectorAll('li')) {
      const text = item.textContent.toLowerCase()
      item.hidden = !words.every((word) => text.includes(word))
    }
    for (const list of contents.querySelectorAll(':scope > ul')) {
      const isEmpty = [...list.children].every((item) => item.hidden)
      list.hidden = isEmpty
      list.previousElementSibling.hidden = isEmpty
    }
  })
  contents.prepend(box)
}

openWhenWide()
wide.addEventListener('change', openWhenWide)
for (const pre of document.querySelectorAll('main pre')) addCopyButton(pre)
const contents = document.querySelector('.contents')
if (contents) addFilter(contents)
contents?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest' })
