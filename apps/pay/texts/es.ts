import type { PayTexts } from './en.ts'

/** What payers read, in Spanish. */
const seconds = (count: number) => (count < 90 ? `unos ${count} segundos` : `unos ${Math.round(count / 60)} minutos`)

export const texts: PayTexts = {
  title: (amount) => `Pagar ${amount}`,
  headings: {
    OPEN: 'A pagar',
    PARTIALLY_PAID: 'Pagar el resto',
    PENDING: 'Pago recibido',
    PAID: 'Pagado',
    REFUNDED: 'Reembolsado',
    EXPIRED: 'Caducado',
    CANCELLED: 'Cancelado',
  },
  to: 'a',
  paidSoFar: (amount) => `${amount} pagados hasta ahora`,
  expires: 'Válido hasta',
  copy: 'Copiar',
  copied: 'Copiado',
  transaction: 'Transacción',
  waiting: 'Cargando la solicitud',
  away: 'El servicio no responde. Volviendo a intentarlo…',
  busy: 'Hay mucha demanda. Esta página continúa en menos de un minuto…',
  stale: 'Es posible que esto no esté al día.',
  refuseNow: 'Si su monedero aún le pide que confirme, rechácelo.',
  sentFrom: (wallet) =>
    `En este navegador ya se envió un pago desde ${wallet}. No pague otra vez. Conecte ese monedero para seguirlo.`,
  openTransaction: 'Ver en el explorador',
  retry: 'Intentar de nuevo',
  back: (shop) => (shop === undefined ? 'Volver a la tienda' : `Volver a ${shop}`),
  problems: {
    NO_KEY: {
      title: 'Este enlace está incompleto',
      says: 'Falta la clave de la tienda. Pida un enlace nuevo a la tienda.',
    },
    SECRET_KEY: {
      title: 'No use este enlace',
      says: 'Contiene la clave secreta de la tienda. Dígale a la tienda que la revoque.',
    },
    BAD_REFERENCE: {
      title: 'Este enlace está incompleto',
      says: 'Falta la referencia de pago. Pida un enlace nuevo a la tienda.',
    },
    REQUEST_NOT_FOUND: { title: 'No se encuentra la solicitud', says: 'Pida un enlace nuevo a la tienda.' },
    INVALID_API_KEY: {
      title: 'Este enlace ya no es válido',
      says: 'La tienda ha revocado su clave. Pida un enlace nuevo a la tienda.',
    },
    ORIGIN_NOT_ALLOWED: {
      title: 'Este enlace no funciona en este sitio',
      says: 'Su clave pertenece a otro sitio. Pida un enlace nuevo a la tienda.',
    },
    OTHER: {
      title: 'No se puede mostrar la solicitud',
      says: 'Inténtelo de nuevo en un momento o pregunte a la tienda.',
    },
  },
  overpaid: 'El pago es definitivo. Pida a la tienda que le devuelva lo pagado de más:',
  states: {
    OPEN: { title: 'A pagar', says: '' },
    PARTIALLY_PAID: { title: 'Pagado en parte', says: 'Pague el resto.' },
    PENDING: {
      title: 'Pago recibido, aún no definitivo',
      says: 'Su pago se está confirmando. No pague otra vez. Puede cerrar esta página.',
    },
    PAID: { title: 'Pago completado', says: 'El pago es definitivo. Ha terminado.' },
    REFUNDED: {
      title: 'El pago se ha devuelto',
      says: 'No pague otra vez esta solicitud; pida una nueva a la tienda.',
    },
    EXPIRED: {
      title: 'Esta solicitud ha caducado',
      says: 'Ya no se puede pagar. No envíe nada; pida una nueva a la tienda.',
    },
    CANCELLED: {
      title: 'La tienda ha cancelado esta solicitud',
      says: 'Ya no se puede pagar. No envíe nada; pida una nueva a la tienda.',
    },
  },
  receipt: {
    title: 'Recibo',
    amount: 'Pagado',
    from: 'De',
    to: 'A',
    time: 'Enviado',
    reference: 'Referencia de pago',
    print: 'Imprimir',
  },
  wallets: {
    title: 'Elija un monedero',
    demo: 'Monederos de prueba con tokens sin valor',
    none: 'No hay ningún monedero en este navegador.',
    connecting: (name) => `Confirme la conexión en ${name} …`,
    silent: (name) =>
      `${name} aún no ha respondido. Ábralo y busque una petición de esta página, o elija otro monedero.`,
    busy: (name) => `${name} ya muestra una petición. Ábralo, respóndala y vuelva a elegir el monedero.`,
    refused: 'Conexión rechazada. Elija un monedero para continuar.',
    failed: (name) => `${name} no se ha conectado:`,
    other: 'Elegir otro monedero',
    connected: 'Paga con',
    unnamed: 'Monedero del navegador',
  },
  phone: {
    open: 'Abrir esta página en su monedero',
    openIn: (wallet) => `Abrir en ${wallet}`,
    send: 'Pagar con el monedero de este teléfono',
    scan: 'Pagar con el teléfono',
    scanSays: 'Escanee el código con la cámara del teléfono. Esta página se abre allí; luego elija su monedero.',
    code: 'Código QR con la dirección de esta página',
    copyLink: 'Copiar el enlace a esta página',
  },
  options: {
    title: 'Formas de pago',
    says: 'Elija un monedero para ver cuáles puede usar.',
    searching: 'Consultando precios…',
    none: 'Ahora mismo no hay ninguna forma de pagar.',
  },
  routes: {
    title: 'Elija cómo pagar',
    searching: 'Consultando su monedero en todas las cadenas…',
    on: (chain) => `en ${chain}`,
    costs: (fees, time) => `Comisiones ${fees} · ${seconds(time)}`,
    cheapest: 'La más barata',
    fastest: 'La más rápida',
    confirmations: (count) =>
      count === 1 ? 'Una confirmación en su monedero' : `${count} confirmaciones en su monedero`,
    andMore: (fees) => `${fees} y otras de precio desconocido`,
    impact: (percent) => `El cambio cuesta un ${percent} respecto al precio de mercado`,
    pay: (amount) => `Pagar ${amount}`,
    none: 'Este monedero no puede pagar',
    noneSays: 'Cómo solucionarlo:',
    others: (count) => (count === 1 ? 'Una forma más' : `${count} formas más`),
    degraded: 'Algunas cadenas no han respondido; puede haber más formas.',
    more: (count) =>
      count === 1 ? 'Una forma que este monedero no puede usar' : `${count} formas que este monedero no puede usar`,
    all: (count) => `Mostrar las ${count}`,
    failed: 'No se han podido cargar las formas de pago.',
  },
  reasons: {
    INSUFFICIENT_GAS: (missing, coin, chain) =>
      `Necesita unos ${missing} ${coin} más en ${chain} para la comisión de red.`,
    INSUFFICIENT_BALANCE: (missing, token, chain) => `Necesita ${missing} ${token} más en ${chain}.`,
    CROSSCHAIN_BALANCE_TOO_LOW: (missing, token, chain) =>
      `Necesita más de ${missing} ${token} adicionales en ${chain}, también para los costes del puente.`,
    GAS_MAY_BE_SPONSORED: 'Es posible que su monedero pague la comisión de red.',
    GAS_UNPRICED: 'No se conoce el precio en dólares de la comisión de red.',
    SWAP_OFF_MARKET: 'El precio del cambio está lejos del mercado. Perdería dinero.',
    PRICE_UNCHECKED: 'No se ha podido comparar el precio del cambio con el mercado.',
    CROSSCHAIN_SURPLUS:
      'El puente puede entregar un poco más de lo debido. El resto va a su monedero en la otra cadena.',
    AMOUNT_ABOVE_OUTSTANDING: 'Es más de lo que queda por pagar.',
    WALLET_IS_PAYEE: 'Este es el monedero de la propia tienda. Elija otro.',
    PAYER_NOT_ALLOWED: 'Este monedero no puede pagar esta solicitud. Use otro.',
    PAYER_SCREENED: 'Este monedero no puede pagar esta solicitud. Use otro.',
    COIN_NOT_SWAPPABLE: 'Esta moneda no se puede cambiar para el pago.',
    CHAIN_UNREACHABLE: 'Esta cadena no responde ahora. Inténtelo de nuevo en un momento.',
    SCREENING_UNAVAILABLE: 'Esta cadena no responde ahora. Inténtelo de nuevo en un momento.',
    approval: 'Su monedero le pide primero que autorice el importe y después que pague.',
    bridge: 'El pago pasa de una cadena a otra.',
  },
  steps: {
    title: 'Pagando',
    quoted: 'Precio confirmado',
    chain: 'Cambie de red en su monedero',
    asking: (step, steps, says) => `Confirme en su monedero, ${step} de ${steps}: ${says}`,
    kinds: {
      APPROVE_RESET: 'anular la autorización anterior.',
      APPROVE: 'autorizar el importe.',
      SWAP: 'cambiar los tokens.',
      PAY: 'pagar.',
    },
    batch: (steps) => `Confirme en su monedero: ${steps} pasos a la vez`,
    fallBack: 'Su monedero confirma los pasos uno a uno',
    sent: (step) => `Enviado, esperando a la cadena (paso ${step})`,
    mined: (step) => `El paso ${step} está en la cadena`,
    atMost: (amount) => `Precio confirmado: paga como mucho ${amount}`,
    expired: 'El precio ha caducado; se pide uno nuevo',
    earlier: 'Esperando el pago que ya envió',
    final: 'En la cadena; pronto será definitivo',
    silent: 'Su monedero aún no ha respondido. Ábralo y busque una petición de esta página.',
    check: 'Comprobar de nuevo',
    stop: 'Dejar de esperar',
  },
  asked: {
    title: 'Ya se pidió el pago a su monedero',
    says: (time, wallet) =>
      `Este navegador pidió este pago al monedero ${wallet}: ${time}. El monedero aún no ha respondido.`,
    otherTab: 'Otra pestaña de este navegador está pagando esta solicitud.',
    next: 'Abra su monedero. Si aún muestra la petición, confírmela o rechácela allí: esta página muestra lo que ocurre. Si paga también aquí, puede pagar dos veces.',
    again: 'Mi monedero no muestra ninguna petición: pagar aquí',
  },
  outcomes: {
    MINED: { title: 'Su pago está en la cadena', says: 'Se está confirmando. Puede cerrar esta página.' },
    SENT: { title: 'Pago enviado', says: 'No pague otra vez. Aparecerá aquí cuando esté en la cadena.' },
    UNKNOWN: {
      title: 'Mire su monedero',
      says: 'Puede que su monedero haya enviado el pago. No pague otra vez antes de mirarlo allí; un pago enviado aparece aquí.',
      again: 'No se envió ningún pago: elegir de nuevo',
    },
    REPLACED: {
      title: 'Transacción sustituida',
      says: 'Se canceló o aceleró en su monedero. No pague otra vez hasta que esta página muestre cuál cuenta.',
    },
    REFUSED: { title: 'Pago rechazado en su monedero', says: 'No se ha pagado nada. Puede elegir de nuevo.' },
    REVERTED: {
      title: 'La transacción ha fallado',
      says: 'No se ha pagado nada salvo la comisión de red. Inténtelo de nuevo o elija otra forma.',
    },
    EXPIRED: { title: 'El precio ha caducado', says: 'No se ha pagado nada. Inténtelo de nuevo.' },
    QUOTE_CHANGED: {
      title: 'El precio ha cambiado',
      says: (amount) =>
        amount === undefined
          ? 'No se ha pagado nada. Elija de nuevo.'
          : `No se ha pagado nada. Ahora son ${amount}. ¿Quiere pagarlo?`,
    },
    WALLET_ERROR: { title: 'Su monedero no ha podido pagar', says: 'No se ha pagado nada.' },
    WALLET_BUSY: {
      title: 'Su monedero ya muestra una petición',
      says: 'No se ha pagado nada. Abra su monedero, responda a esa petición e inténtelo de nuevo.',
    },
    NO_ANSWER: {
      title: 'Su monedero no ha respondido',
      says: 'No se ha pagado nada. Si su monedero aún muestra una petición, rechácela. Luego inténtelo de nuevo o elija otro monedero.',
    },
    WRONG_ACCOUNT: {
      title: 'Su monedero usa ahora otra cuenta',
      says: 'No se ha pagado nada. Vuelva a elegir la cuenta en su monedero o elija otro monedero.',
    },
    WRONG_CHAIN: {
      title: 'Su monedero no ha cambiado de red',
      says: 'No se ha pagado nada. Cambie de red en su monedero e inténtelo de nuevo, o elija otra forma.',
    },
    UNKNOWN_CHAIN: {
      title: 'Su monedero no tiene esta red',
      says: (chain: string) =>
        `No se ha pagado nada. Añada la red ${chain} en su monedero e inténtelo de nuevo, o elija otra forma.`,
    },
    INTERRUPTED: {
      title: 'El pago no se ha completado',
      says: 'Sus tokens se cambiaron, pero el pago no se envió. Elija de nuevo: su monedero tiene ahora el otro token.',
    },
    walletSays: (message) => `El monedero dice: ${message}`,
    COVERED: { title: 'Ya está pagado', says: 'No queda nada por pagar. El pago aparecerá aquí en un momento.' },
    NOT_PREPARED: {
      title: 'No se ha podido preparar el pago',
      says: 'No se ha pagado nada. Inténtelo de nuevo en un momento.',
    },
    back: 'Volver a las formas de pago',
    more: 'Pagar el resto',
  },
  dialog: {
    title: 'Monedero de prueba',
    asks: (wallet) => `El monedero «${wallet}» pregunta: ¿firmar esto?`,
    to: 'A',
    value: 'Monedas',
    data: 'Datos',
    confirm: 'Confirmar',
    refuse: 'Rechazar',
  },
}
