import type { PayTexts } from './en.ts'

/** What payers read, in French, where no line begins with `;`, `:`, `?` or `!`. */
const seconds = (count: number) =>
  count < 90 ? `environ ${count} secondes` : `environ ${Math.round(count / 60)} minutes`

export const texts: PayTexts = {
  title: (amount) => `Payer ${amount}`,
  headings: {
    OPEN: 'À payer',
    PARTIALLY_PAID: 'Payer le reste',
    PENDING: 'Paiement reçu',
    PAID: 'Payé',
    REFUNDED: 'Remboursé',
    EXPIRED: 'Expiré',
    CANCELLED: 'Annulé',
  },
  to: 'à',
  paidSoFar: (amount) => `${amount} payés jusqu’ici`,
  expires: 'Valable jusqu’au',
  copy: 'Copier',
  copied: 'Copié',
  transaction: 'Transaction',
  waiting: 'Chargement de la demande',
  away: 'Le service ne répond pas. Nouvel essai…',
  busy: 'La demande est forte. Cette page reprend dans moins d’une minute…',
  stale: 'Ceci n’est peut-être plus à jour.',
  refuseNow: 'Si votre portefeuille demande encore une confirmation, refusez.',
  sentFrom: (wallet) =>
    `Un paiement depuis ${wallet} a déjà été envoyé dans ce navigateur. Ne payez pas une seconde fois. Connectez ce portefeuille pour le suivre.`,
  openTransaction: 'Voir dans l’explorateur',
  retry: 'Réessayer',
  back: (shop) => (shop === undefined ? 'Retour à la boutique' : `Retour à ${shop}`),
  problems: {
    NO_KEY: {
      title: 'Ce lien est incomplet',
      says: 'Il manque la clé de la boutique. Demandez un nouveau lien à la boutique.',
    },
    SECRET_KEY: {
      title: 'N’utilisez pas ce lien',
      says: 'Il contient la clé secrète de la boutique. Dites à la boutique de la révoquer.',
    },
    BAD_REFERENCE: {
      title: 'Ce lien est incomplet',
      says: 'Il manque la référence de paiement. Demandez un nouveau lien à la boutique.',
    },
    REQUEST_NOT_FOUND: { title: 'Demande introuvable', says: 'Demandez un nouveau lien à la boutique.' },
    INVALID_API_KEY: {
      title: 'Ce lien n’est plus valable',
      says: 'La boutique a révoqué sa clé. Demandez un nouveau lien à la boutique.',
    },
    ORIGIN_NOT_ALLOWED: {
      title: 'Ce lien ne fonctionne pas sur ce site',
      says: 'Sa clé appartient à un autre site. Demandez un nouveau lien à la boutique.',
    },
    OTHER: {
      title: 'La demande ne peut pas être affichée',
      says: 'Réessayez dans un instant, ou demandez à la boutique.',
    },
  },
  overpaid: 'Le paiement est définitif. Demandez à la boutique de rembourser le trop-perçu\u00a0:',
  states: {
    OPEN: { title: 'À payer', says: '' },
    PARTIALLY_PAID: { title: 'Payé en partie', says: 'Payez le reste.' },
    PENDING: {
      title: 'Paiement reçu, pas encore définitif',
      says: 'Votre paiement est en cours de confirmation. Ne payez pas une seconde fois. Vous pouvez fermer cette page.',
    },
    PAID: { title: 'Paiement terminé', says: 'Le paiement est définitif. C’est fait.' },
    REFUNDED: {
      title: 'Le paiement a été rendu',
      says: 'Ne payez pas cette demande une seconde fois\u00a0; demandez-en une nouvelle à la boutique.',
    },
    EXPIRED: {
      title: 'Cette demande a expiré',
      says: 'Elle ne peut plus être payée. N’envoyez rien\u00a0; demandez-en une nouvelle à la boutique.',
    },
    CANCELLED: {
      title: 'La boutique a annulé cette demande',
      says: 'Elle ne peut plus être payée. N’envoyez rien\u00a0; demandez-en une nouvelle à la boutique.',
    },
  },
  receipt: {
    title: 'Reçu',
    amount: 'Payé',
    from: 'De',
    to: 'À',
    time: 'Envoyé',
    reference: 'Référence de paiement',
    print: 'Imprimer',
  },
  wallets: {
    title: 'Choisissez un portefeuille',
    demo: 'Portefeuilles de démonstration avec des jetons sans valeur',
    none: 'Aucun portefeuille dans ce navigateur.',
    connecting: (name) => `Confirmez la connexion dans ${name} …`,
    silent: (name) =>
      `${name} n’a pas encore répondu. Ouvrez-le et cherchez une demande de cette page, ou choisissez un autre portefeuille.`,
    busy: (name) =>
      `${name} affiche déjà une demande. Ouvrez-le, répondez-y, puis choisissez de nouveau le portefeuille.`,
    refused: 'Connexion refusée. Choisissez un portefeuille pour continuer.',
    failed: (name) => `${name} ne s’est pas connecté\u00a0:`,
    other: 'Choisir un autre portefeuille',
    connected: 'Vous payez avec',
    unnamed: 'Portefeuille du navigateur',
  },
  phone: {
    open: 'Ouvrir cette page dans votre portefeuille',
    openIn: (wallet) => `Ouvrir dans ${wallet}`,
    send: 'Payer avec le portefeuille de ce téléphone',
    scan: 'Payer avec votre téléphone',
    scanSays:
      'Scannez le code avec l’appareil photo de votre téléphone. Cette page s’y ouvre\u00a0; choisissez ensuite votre portefeuille.',
    code: 'Code QR de l’adresse de cette page',
    copyLink: 'Copier le lien de cette page',
  },
  options: {
    title: 'Moyens de paiement',
    says: 'Choisissez un portefeuille pour voir lesquels il peut utiliser.',
    searching: 'Recherche des prix…',
    none: 'Il n’y a aucun moyen de payer pour le moment.',
  },
  routes: {
    title: 'Choisissez comment payer',
    searching: 'Examen de votre portefeuille sur toutes les chaînes…',
    on: (chain) => `sur ${chain}`,
    costs: (fees, time) => `Frais ${fees} · ${seconds(time)}`,
    cheapest: 'Le moins cher',
    fastest: 'Le plus rapide',
    confirmations: (count) =>
      count === 1 ? 'Une confirmation dans votre portefeuille' : `${count} confirmations dans votre portefeuille`,
    andMore: (fees) => `${fees} et d’autres au prix inconnu`,
    impact: (percent) => `L’échange coûte ${percent} par rapport au prix du marché`,
    pay: (amount) => `Payer ${amount}`,
    none: 'Ce portefeuille ne peut pas payer',
    noneSays: 'Pour y remédier\u00a0:',
    others: (count) => (count === 1 ? 'Un autre moyen' : `${count} autres moyens`),
    degraded: 'Certaines chaînes n’ont pas répondu\u00a0; il y a peut-être d’autres moyens.',
    more: (count) =>
      count === 1
        ? 'Un moyen que ce portefeuille ne peut pas utiliser'
        : `${count} moyens que ce portefeuille ne peut pas utiliser`,
    all: (count) => `Afficher les ${count}`,
    failed: 'Les moyens de paiement n’ont pas pu être chargés.',
  },
  reasons: {
    INSUFFICIENT_GAS: (missing, coin, chain) =>
      `Il vous manque environ ${missing} ${coin} sur ${chain} pour les frais de réseau.`,
    INSUFFICIENT_BALANCE: (missing, token, chain) => `Il vous manque ${missing} ${token} sur ${chain}.`,
    CROSSCHAIN_BALANCE_TOO_LOW: (missing, token, chain) =>
      `Il vous manque plus de ${missing} ${token} sur ${chain}, frais du pont compris.`,
    GAS_MAY_BE_SPONSORED: 'Votre portefeuille paie peut-être les frais de réseau pour vous.',
    GAS_UNPRICED: 'Le prix en dollars des frais de réseau est inconnu.',
    SWAP_OFF_MARKET: 'Le prix de l’échange est loin de celui du marché. Vous perdriez de l’argent.',
    PRICE_UNCHECKED: 'Le prix de l’échange n’a pas pu être comparé à celui du marché.',
    CROSSCHAIN_SURPLUS:
      'Le pont livre peut-être un peu plus que nécessaire. Le reste va à votre portefeuille sur l’autre chaîne.',
    AMOUNT_ABOVE_OUTSTANDING: 'C’est plus que ce qui reste à payer.',
    WALLET_IS_PAYEE: 'C’est le portefeuille de la boutique elle-même. Choisissez-en un autre.',
    PAYER_NOT_ALLOWED: 'Ce portefeuille ne peut pas payer cette demande. Utilisez-en un autre.',
    PAYER_SCREENED: 'Ce portefeuille ne peut pas payer cette demande. Utilisez-en un autre.',
    COIN_NOT_SWAPPABLE: 'Cette monnaie ne peut pas être échangée pour le paiement.',
    CHAIN_UNREACHABLE: 'Cette chaîne ne répond pas pour le moment. Réessayez dans un instant.',
    SCREENING_UNAVAILABLE: 'Cette chaîne ne répond pas pour le moment. Réessayez dans un instant.',
    approval: 'Votre portefeuille vous demande d’abord d’autoriser le montant, puis de payer.',
    bridge: 'Le paiement passe d’une chaîne à une autre.',
  },
  steps: {
    title: 'Paiement en cours',
    quoted: 'Prix confirmé',
    chain: 'Changez de réseau dans votre portefeuille',
    asking: (step, steps, says) => `Confirmez dans votre portefeuille, ${step} sur ${steps}\u00a0: ${says}`,
    kinds: {
      APPROVE_RESET: 'annuler l’autorisation précédente.',
      APPROVE: 'autoriser le montant.',
      SWAP: 'échanger les jetons.',
      PAY: 'payer.',
    },
    batch: (steps) => `Confirmez dans votre portefeuille\u00a0: ${steps} étapes à la fois`,
    fallBack: 'Votre portefeuille confirme les étapes une à une',
    sent: (step) => `Envoyé, en attente de la chaîne (étape ${step})`,
    mined: (step) => `L’étape ${step} est sur la chaîne`,
    atMost: (amount) => `Prix confirmé\u00a0: vous payez au plus ${amount}`,
    expired: 'Le prix a expiré\u00a0; un nouveau est demandé',
    earlier: 'En attente du paiement que vous avez déjà envoyé',
    final: 'Sur la chaîne\u00a0; bientôt définitif',
    silent: 'Votre portefeuille n’a pas encore répondu. Ouvrez-le et cherchez une demande de cette page.',
    check: 'Vérifier de nouveau',
    stop: 'Ne plus attendre',
  },
  asked: {
    title: 'Votre portefeuille a déjà été sollicité pour ce paiement',
    says: (time, wallet) =>
      `Ce navigateur a demandé ce paiement au portefeuille ${wallet}\u00a0: ${time}. Le portefeuille n’a pas encore répondu.`,
    otherTab: 'Un autre onglet de ce navigateur paie cette demande.',
    next: 'Ouvrez votre portefeuille. S’il affiche encore la demande, confirmez-la ou refusez-la là-bas\u00a0: cette page montre ce qui se passe. Si vous payez aussi ici, vous paierez peut-être deux fois.',
    again: 'Mon portefeuille n’affiche aucune demande\u00a0: payer ici',
  },
  outcomes: {
    MINED: {
      title: 'Votre paiement est sur la chaîne',
      says: 'Il est en cours de confirmation. Vous pouvez fermer cette page.',
    },
    SENT: {
      title: 'Paiement envoyé',
      says: 'Ne payez pas une seconde fois. Il apparaîtra ici dès qu’il sera sur la chaîne.',
    },
    UNKNOWN: {
      title: 'Vérifiez votre portefeuille',
      says: 'Votre portefeuille a peut-être envoyé le paiement. Ne payez pas une seconde fois avant d’y avoir vérifié\u00a0; un paiement envoyé apparaît ici.',
      again: 'Aucun paiement envoyé\u00a0: choisir de nouveau',
    },
    REPLACED: {
      title: 'Transaction remplacée',
      says: 'Elle a été annulée ou accélérée dans votre portefeuille. Ne payez pas une seconde fois avant que cette page montre laquelle compte.',
    },
    REFUSED: {
      title: 'Paiement refusé dans votre portefeuille',
      says: 'Rien n’a été payé. Vous pouvez choisir de nouveau.',
    },
    REVERTED: {
      title: 'La transaction a échoué',
      says: 'Rien n’a été payé sauf les frais de réseau. Réessayez ou choisissez un autre moyen.',
    },
    EXPIRED: { title: 'Le prix a expiré', says: 'Rien n’a été payé. Réessayez.' },
    QUOTE_CHANGED: {
      title: 'Le prix a changé',
      says: (amount) =>
        amount === undefined
          ? 'Rien n’a été payé. Choisissez de nouveau.'
          : `Rien n’a été payé. C’est maintenant ${amount}. Voulez-vous payer cela\u00a0?`,
    },
    WALLET_ERROR: { title: 'Votre portefeuille n’a pas pu payer', says: 'Rien n’a été payé.' },
    WALLET_BUSY: {
      title: 'Votre portefeuille affiche déjà une demande',
      says: 'Rien n’a été payé. Ouvrez votre portefeuille, répondez à cette demande, puis réessayez.',
    },
    NO_ANSWER: {
      title: 'Votre portefeuille n’a pas répondu',
      says: 'Rien n’a été payé. Si votre portefeuille affiche encore une demande, refusez-la. Puis réessayez, ou choisissez un autre portefeuille.',
    },
    WRONG_ACCOUNT: {
      title: 'Votre portefeuille utilise maintenant un autre compte',
      says: 'Rien n’a été payé. Choisissez de nouveau le compte dans votre portefeuille, ou un autre portefeuille.',
    },
    WRONG_CHAIN: {
      title: 'Votre portefeuille n’a pas changé de réseau',
      says: 'Rien n’a été payé. Changez de réseau dans votre portefeuille et réessayez, ou choisissez un autre moyen.',
    },
    UNKNOWN_CHAIN: {
      title: 'Votre portefeuille n’a pas ce réseau',
      says: (chain: string) =>
        `Rien n’a été payé. Ajoutez le réseau ${chain} dans votre portefeuille et réessayez, ou choisissez un autre moyen.`,
    },
    INTERRUPTED: {
      title: 'Le paiement n’est pas terminé',
      says: 'Vos jetons ont été échangés, mais le paiement n’a pas été envoyé. Choisissez de nouveau\u00a0: votre portefeuille contient maintenant l’autre jeton.',
    },
    walletSays: (message) => `Le portefeuille dit\u00a0: ${message}`,
    COVERED: { title: 'Déjà payé', says: 'Il ne reste rien à payer. Le paiement apparaîtra ici dans un instant.' },
    NOT_PREPARED: {
      title: 'Le paiement n’a pas pu être préparé',
      says: 'Rien n’a été payé. Réessayez dans un instant.',
    },
    back: 'Retour aux moyens de paiement',
    more: 'Payer le reste',
  },
  dialog: {
    title: 'Portefeuille de démonstration',
    asks: (wallet) => `Le portefeuille «\u00a0${wallet}\u00a0» demande\u00a0: signer ceci\u00a0?`,
    to: 'À',
    value: 'Monnaie',
    data: 'Données',
    confirm: 'Confirmer',
    refuse: 'Refuser',
  },
}
