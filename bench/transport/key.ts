/** The key by which the client calls; it exists in the servers alone. */
export const API_KEY = 'bench'
