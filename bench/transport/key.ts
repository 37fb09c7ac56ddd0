/** The API key of the client; valid only in the servers of this benchmark. */
export const API_KEY = 'bench'
