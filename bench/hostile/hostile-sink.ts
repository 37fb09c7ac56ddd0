/** Accepts connections and discards their input, for a second each. Prints its port. */
import { type AddressInfo, createServer } from 'node:net'

const server = createServer((socket) => {
  socket.on('error', () => {}).resume()
  setTimeout(() => socket.destroy(), 1_000)
})
server.listen(0, '127.0.0.1', () => console.log((server.address() as AddressInfo).port))
