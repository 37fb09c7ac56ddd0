/** Chooses the best of several contenders that arrive one by one. It decides on each as soon as those still awaited cannot change the outcome. */
export type Selection = ReturnType<typeof createSelection>

interface SelectionOptions {
  readonly places: number
  /** Contenders that arrive later than this after the first are not waited for. */
  readonly patienceMs: number
}

interface Entry {
  readonly worth: bigint
  readonly decide: (isChosen: boolean) => void
  decided?: boolean
}

/** Makes a selection of the `places` best. */
export function createSelection({ places, patienceMs }: SelectionOptions) {
  const entries: Entry[] = []
  let chosen = 0
  let outstanding = 0
  let isPatient = true
  let timer: NodeJS.Timeout | undefined

  function settle(): void {
    const awaited = isPatient ? outstanding : 0
    for (const [place, entry] of entries.toSorted(byWorth).entries()) {
      if (entry.decided !== undefined) continue
      if (place >= places || chosen >= places) decide(entry, false)
      else if (place + awaited < places) decide(entry, true)
    }
    if (entries.every(({ decided }) => decided !== undefined)) clearTimeout(timer)
  }

  function decide(entry: Entry, isChosen: boolean): void {
    entry.decided = isChosen
    if (isChosen) chosen += 1
    entry.decide(isChosen)
  }

  function losePatience(): void {
    isPatient = false
    settle()
  }

  return {
    /** Announces one more contender. To be called for all before the first enters. */
    expect() {
      outstanding += 1
      // Either is called once.
      return {
        /** @param worth - higher is better. @returns whether it is chosen */
        enter(worth: bigint) {
          outstanding -= 1
          return new Promise<boolean>((decideEntry) => {
            entries.push({ worth, decide: decideEntry })
            timer ??= setTimeout(losePatience, patienceMs)
            settle()
          })
        },
        /** Takes it out of the selection. */
        withdraw(): void {
          outstanding -= 1
          settle()
        },
      }
    },
  }
}

/** The best first; of equals the one that came first. */
function byWorth(a: Entry, b: Entry): number {
  return a.worth > b.worth ? -1 : a.worth < b.worth ? 1 : 0
}
