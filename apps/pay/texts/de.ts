import type { PayTexts } from './en.ts'

/** What payers read, in German. */
const seconds = (count: number) => (count < 90 ? `etwa ${count} Sekunden` : `etwa ${Math.round(count / 60)} Minuten`)

export const texts: PayTexts = {
  title: (amount) => `${amount} bezahlen`,
  headings: {
    OPEN: 'Zu bezahlen',
    PARTIALLY_PAID: 'Rest bezahlen',
    PENDING: 'Zahlung eingegangen',
    PAID: 'Bezahlt',
    REFUNDED: 'Erstattet',
    EXPIRED: 'Abgelaufen',
    CANCELLED: 'Storniert',
  },
  to: 'an',
  paidSoFar: (amount) => `${amount} bisher bezahlt`,
  expires: 'Gültig bis',
  copy: 'Kopieren',
  copied: 'Kopiert',
  transaction: 'Transaktion',
  waiting: 'Die Anforderung wird geladen',
  away: 'Der Dienst antwortet nicht. Neuer Versuch läuft …',
  busy: 'Gerade ist viel los. Diese Seite macht innerhalb einer Minute weiter …',
  stale: 'Dies ist vielleicht nicht mehr aktuell.',
  refuseNow: 'Wenn Ihre Wallet noch um Bestätigung bittet, lehnen Sie ab.',
  sentFrom: (wallet) =>
    `In diesem Browser wurde schon eine Zahlung von ${wallet} gesendet. Zahlen Sie nicht noch einmal. Verbinden Sie diese Wallet, um die Zahlung zu verfolgen.`,
  openTransaction: 'Im Explorer anzeigen',
  retry: 'Noch einmal versuchen',
  back: (shop) => (shop === undefined ? 'Zurück zum Shop' : `Zurück zu ${shop}`),
  problems: {
    NO_KEY: {
      title: 'Dieser Link ist unvollständig',
      says: 'Der Schlüssel des Shops fehlt. Bitten Sie den Shop um einen neuen Link.',
    },
    SECRET_KEY: {
      title: 'Verwenden Sie diesen Link nicht',
      says: 'Er enthält den geheimen Schlüssel des Shops. Sagen Sie dem Shop, dass er ihn widerrufen soll.',
    },
    BAD_REFERENCE: {
      title: 'Dieser Link ist unvollständig',
      says: 'Die Zahlungsreferenz fehlt. Bitten Sie den Shop um einen neuen Link.',
    },
    REQUEST_NOT_FOUND: { title: 'Anforderung nicht gefunden', says: 'Bitten Sie den Shop um einen neuen Link.' },
    INVALID_API_KEY: {
      title: 'Dieser Link gilt nicht mehr',
      says: 'Der Shop hat seinen Schlüssel widerrufen. Bitten Sie den Shop um einen neuen Link.',
    },
    ORIGIN_NOT_ALLOWED: {
      title: 'Dieser Link funktioniert auf dieser Website nicht',
      says: 'Sein Schlüssel gehört zu einer anderen Website. Bitten Sie den Shop um einen neuen Link.',
    },
    OTHER: {
      title: 'Die Anforderung kann nicht angezeigt werden',
      says: 'Versuchen Sie es gleich noch einmal, oder fragen Sie den Shop.',
    },
  },
  overpaid: 'Die Zahlung ist endgültig. Bitten Sie den Shop, den zu viel bezahlten Betrag zu erstatten:',
  states: {
    OPEN: { title: 'Zu bezahlen', says: '' },
    PARTIALLY_PAID: { title: 'Teilweise bezahlt', says: 'Bezahlen Sie den Rest.' },
    PENDING: {
      title: 'Zahlung eingegangen, noch nicht endgültig',
      says: 'Ihre Zahlung wird bestätigt. Zahlen Sie nicht noch einmal. Sie können diese Seite schließen.',
    },
    PAID: { title: 'Zahlung abgeschlossen', says: 'Die Zahlung ist endgültig. Sie sind fertig.' },
    REFUNDED: {
      title: 'Die Zahlung wurde zurückgegeben',
      says: 'Bezahlen Sie diese Anforderung nicht noch einmal; bitten Sie den Shop um eine neue.',
    },
    EXPIRED: {
      title: 'Diese Anforderung ist abgelaufen',
      says: 'Sie kann nicht mehr bezahlt werden. Senden Sie nichts; bitten Sie den Shop um eine neue.',
    },
    CANCELLED: {
      title: 'Der Shop hat diese Anforderung storniert',
      says: 'Sie kann nicht mehr bezahlt werden. Senden Sie nichts; bitten Sie den Shop um eine neue.',
    },
  },
  receipt: {
    title: 'Beleg',
    amount: 'Bezahlt',
    from: 'Von',
    to: 'An',
    time: 'Gesendet',
    reference: 'Zahlungsreferenz',
    print: 'Drucken',
  },
  wallets: {
    title: 'Wallet wählen',
    demo: 'Demo-Wallets mit wertlosen Token',
    none: 'In diesem Browser wurde keine Wallet gefunden.',
    connecting: (name) => `Bestätigen Sie die Verbindung in ${name} …`,
    silent: (name) =>
      `${name} hat noch nicht geantwortet. Öffnen Sie die Wallet und suchen Sie die Anfrage dieser Seite, oder wählen Sie eine andere.`,
    busy: (name) =>
      `${name} zeigt schon eine Anfrage. Öffnen Sie die Wallet, beantworten Sie diese und wählen Sie die Wallet dann noch einmal.`,
    refused: 'Verbindung abgelehnt. Wählen Sie eine Wallet, um fortzufahren.',
    failed: (name) => `${name} hat sich nicht verbunden:`,
    other: 'Andere Wallet wählen',
    connected: 'Sie zahlen mit',
    unnamed: 'Wallet des Browsers',
  },
  phone: {
    open: 'Diese Seite in Ihrer Wallet öffnen',
    openIn: (wallet) => `In ${wallet} öffnen`,
    send: 'Mit der Wallet auf diesem Telefon bezahlen',
    scan: 'Mit dem Telefon bezahlen',
    scanSays:
      'Scannen Sie den Code mit der Kamera Ihres Telefons. Diese Seite öffnet sich dort; wählen Sie dann Ihre Wallet.',
    code: 'QR-Code mit der Adresse dieser Seite',
    copyLink: 'Link zu dieser Seite kopieren',
  },
  options: {
    title: 'Zahlungswege',
    says: 'Wählen Sie eine Wallet, um zu sehen, welche davon sie nutzen kann.',
    searching: 'Preise werden abgefragt …',
    none: 'Gerade gibt es keinen Weg zu bezahlen.',
  },
  routes: {
    title: 'Wie möchten Sie bezahlen?',
    searching: 'Ihre Wallet wird auf allen Chains geprüft …',
    on: (chain) => `auf ${chain}`,
    costs: (fees, time) => `Gebühren ${fees} · ${seconds(time)}`,
    cheapest: 'Am günstigsten',
    fastest: 'Am schnellsten',
    confirmations: (count) =>
      count === 1 ? 'Eine Bestätigung in Ihrer Wallet' : `${count} Bestätigungen in Ihrer Wallet`,
    andMore: (fees) => `${fees} und weitere ohne bekannten Preis`,
    impact: (percent) => `Der Tausch kostet ${percent} gegenüber dem Marktpreis`,
    pay: (amount) => `${amount} bezahlen`,
    none: 'Diese Wallet kann nicht bezahlen',
    noneSays: 'So lässt sich das ändern:',
    others: (count) => (count === 1 ? 'Ein weiterer Weg' : `${count} weitere Wege`),
    degraded: 'Einige Chains haben nicht geantwortet; vielleicht gibt es mehr Wege.',
    more: (count) =>
      count === 1 ? 'Ein Weg, den diese Wallet nicht nehmen kann' : `${count} Wege, die diese Wallet nicht nehmen kann`,
    all: (count) => `Alle ${count} anzeigen`,
    failed: 'Die Zahlungswege konnten nicht geladen werden.',
  },
  reasons: {
    INSUFFICIENT_GAS: (missing, coin, chain) =>
      `Sie brauchen etwa ${missing} ${coin} mehr auf ${chain} für die Netzwerkgebühr.`,
    INSUFFICIENT_BALANCE: (missing, token, chain) => `Sie brauchen ${missing} ${token} mehr auf ${chain}.`,
    CROSSCHAIN_BALANCE_TOO_LOW: (missing, token, chain) =>
      `Sie brauchen mehr als ${missing} ${token} zusätzlich auf ${chain}, auch für die Kosten der Bridge.`,
    GAS_MAY_BE_SPONSORED: 'Vielleicht zahlt Ihre Wallet die Netzwerkgebühr für Sie.',
    GAS_UNPRICED: 'Für die Netzwerkgebühr ist kein Preis in Dollar bekannt.',
    SWAP_OFF_MARKET: 'Der Preis der Börse liegt weit vom Marktpreis entfernt. Sie würden Geld verlieren.',
    PRICE_UNCHECKED: 'Der Preis der Börse konnte nicht mit dem Markt verglichen werden.',
    CROSSCHAIN_SURPLUS:
      'Die Bridge liefert vielleicht etwas mehr, als zu bezahlen ist. Der Rest geht an Ihre Wallet auf der anderen Chain.',
    AMOUNT_ABOVE_OUTSTANDING: 'Das ist mehr, als noch zu bezahlen ist.',
    WALLET_IS_PAYEE: 'Das ist die Wallet des Shops selbst. Wählen Sie eine andere.',
    PAYER_NOT_ALLOWED: 'Diese Wallet kann diese Forderung nicht bezahlen. Nehmen Sie eine andere.',
    PAYER_SCREENED: 'Diese Wallet kann diese Forderung nicht bezahlen. Nehmen Sie eine andere.',
    COIN_NOT_SWAPPABLE: 'Diese Währung kann nicht für die Zahlung getauscht werden.',
    CHAIN_UNREACHABLE: 'Diese Chain antwortet gerade nicht. Versuchen Sie es gleich noch einmal.',
    SCREENING_UNAVAILABLE: 'Diese Chain antwortet gerade nicht. Versuchen Sie es gleich noch einmal.',
    approval: 'Ihre Wallet bittet Sie zuerst, den Betrag freizugeben, und dann zu bezahlen.',
    bridge: 'Die Zahlung geht von einer Chain zu einer anderen.',
  },
  steps: {
    title: 'Zahlung läuft',
    quoted: 'Preis bestätigt',
    chain: 'Wechseln Sie in Ihrer Wallet das Netzwerk',
    asking: (step, steps, says) => `Bestätigen Sie in Ihrer Wallet, ${step} von ${steps}: ${says}`,
    kinds: {
      APPROVE_RESET: 'die bisherige Freigabe aufheben.',
      APPROVE: 'den Betrag freigeben.',
      SWAP: 'die Token tauschen.',
      PAY: 'bezahlen.',
    },
    batch: (steps) => `Bestätigen Sie in Ihrer Wallet: ${steps} Schritte auf einmal`,
    fallBack: 'Ihre Wallet bestätigt die Schritte einzeln',
    sent: (step) => `Gesendet, die Chain wird abgewartet (Schritt ${step})`,
    mined: (step) => `Schritt ${step} ist auf der Chain`,
    atMost: (amount) => `Preis bestätigt: Sie zahlen höchstens ${amount}`,
    expired: 'Der Preis ist abgelaufen; ein neuer wird geholt',
    earlier: 'Ihre schon gesendete Zahlung wird abgewartet',
    final: 'Auf der Chain; sie wird bald endgültig',
    silent: 'Ihre Wallet hat noch nicht geantwortet. Öffnen Sie sie und suchen Sie die Anfrage dieser Seite.',
    check: 'Noch einmal nachsehen',
    stop: 'Nicht länger warten',
  },
  asked: {
    title: 'Ihre Wallet wurde schon um die Zahlung gebeten',
    says: (time, wallet) =>
      `Dieser Browser hat die Wallet ${wallet} um diese Zahlung gebeten: ${time}. Die Wallet hat noch nicht geantwortet.`,
    otherTab: 'Ein anderer Tab dieses Browsers bezahlt diese Anforderung.',
    next: 'Öffnen Sie Ihre Wallet. Wenn sie die Anfrage noch zeigt, bestätigen Sie sie dort oder lehnen Sie sie ab: Diese Seite zeigt, was geschieht. Wenn Sie hier auch bezahlen, zahlen Sie vielleicht doppelt.',
    again: 'Meine Wallet zeigt keine Anfrage: hier bezahlen',
  },
  outcomes: {
    MINED: { title: 'Ihre Zahlung ist auf der Chain', says: 'Sie wird bestätigt. Sie können diese Seite schließen.' },
    SENT: {
      title: 'Zahlung gesendet',
      says: 'Zahlen Sie nicht noch einmal. Sie erscheint hier, sobald sie auf der Chain ist.',
    },
    UNKNOWN: {
      title: 'Prüfen Sie Ihre Wallet',
      says: 'Ihre Wallet hat die Zahlung vielleicht gesendet. Zahlen Sie nicht noch einmal, bevor Sie dort nachgesehen haben; eine gesendete Zahlung erscheint hier.',
      again: 'Keine Zahlung gesendet: neu wählen',
    },
    REPLACED: {
      title: 'Transaktion ersetzt',
      says: 'Sie wurde in Ihrer Wallet abgebrochen oder beschleunigt. Zahlen Sie nicht noch einmal, bis diese Seite zeigt, welche zählt.',
    },
    REFUSED: { title: 'Zahlung in Ihrer Wallet abgelehnt', says: 'Es wurde nichts bezahlt. Sie können neu wählen.' },
    REVERTED: {
      title: 'Transaktion fehlgeschlagen',
      says: 'Außer der Netzwerkgebühr wurde nichts bezahlt. Versuchen Sie es noch einmal, oder wählen Sie einen anderen Weg.',
    },
    EXPIRED: { title: 'Der Preis ist abgelaufen', says: 'Es wurde nichts bezahlt. Versuchen Sie es noch einmal.' },
    QUOTE_CHANGED: {
      title: 'Der Preis hat sich geändert',
      says: (amount) =>
        amount === undefined
          ? 'Es wurde nichts bezahlt. Wählen Sie neu.'
          : `Es wurde nichts bezahlt. Jetzt sind es ${amount}. Möchten Sie das bezahlen?`,
    },
    WALLET_ERROR: { title: 'Ihre Wallet konnte nicht bezahlen', says: 'Es wurde nichts bezahlt.' },
    WALLET_BUSY: {
      title: 'Ihre Wallet zeigt schon eine Anfrage',
      says: 'Es wurde nichts bezahlt. Öffnen Sie Ihre Wallet, beantworten Sie die Anfrage und versuchen Sie es dann noch einmal.',
    },
    NO_ANSWER: {
      title: 'Ihre Wallet hat nicht geantwortet',
      says: 'Es wurde nichts bezahlt. Wenn Ihre Wallet noch eine Anfrage zeigt, lehnen Sie sie ab. Versuchen Sie es dann noch einmal, oder wählen Sie eine andere Wallet.',
    },
    WRONG_ACCOUNT: {
      title: 'Ihre Wallet verwendet jetzt ein anderes Konto',
      says: 'Es wurde nichts bezahlt. Wählen Sie in Ihrer Wallet wieder dieses Konto, oder wählen Sie eine andere Wallet.',
    },
    WRONG_CHAIN: {
      title: 'Ihre Wallet hat das Netzwerk nicht gewechselt',
      says: 'Es wurde nichts bezahlt. Wechseln Sie in Ihrer Wallet das Netzwerk und versuchen Sie es noch einmal, oder wählen Sie einen anderen Weg.',
    },
    UNKNOWN_CHAIN: {
      title: 'Ihre Wallet hat dieses Netzwerk nicht',
      says: (chain: string) =>
        `Es wurde nichts bezahlt. Fügen Sie in Ihrer Wallet das Netzwerk ${chain} hinzu und versuchen Sie es noch einmal, oder wählen Sie einen anderen Weg.`,
    },
    INTERRUPTED: {
      title: 'Die Zahlung wurde nicht abgeschlossen',
      says: 'Ihre Token wurden getauscht, aber die Zahlung wurde nicht gesendet. Wählen Sie neu: Ihre Wallet hat jetzt den anderen Token.',
    },
    walletSays: (message) => `Die Wallet meldet: ${message}`,
    COVERED: {
      title: 'Schon bezahlt',
      says: 'Es ist nichts mehr zu bezahlen. Die Zahlung erscheint gleich hier.',
    },
    NOT_PREPARED: {
      title: 'Die Zahlung konnte nicht vorbereitet werden',
      says: 'Es wurde nichts bezahlt. Versuchen Sie es gleich noch einmal.',
    },
    back: 'Zurück zu den Zahlungswegen',
    more: 'Rest bezahlen',
  },
  dialog: {
    title: 'Demo-Wallet',
    asks: (wallet) => `Die Wallet „${wallet}“ fragt: Unterschreiben?`,
    to: 'An',
    value: 'Münzen',
    data: 'Daten',
    confirm: 'Bestätigen',
    refuse: 'Ablehnen',
  },
}
