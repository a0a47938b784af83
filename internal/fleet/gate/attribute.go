package gate

// Attributes of nodes that are machines of the fleet. Only Gate.Admit sets them, from the token that the node showed.
const (
	AttributeInstance = "unique.fleet.instance" // the machine's intent
	AttributePool     = "fleet.pool"
	AttributeTemplate = "fleet.template" // what the machine was made from
	AttributeType     = "platform.type"
	AttributeZone     = "platform.zone"
	AttributeMarket   = "platform.market"
)
