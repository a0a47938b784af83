package execution

// Statement is what a signed receipt says: the payload of a JSON web signature.
type Statement struct {
	Issuer      string   `json:"iss,omitempty"` // server.oidc_issuer
	Subject     string   `json:"sub"`           // execution:REGION:ID
	IssuedAt    int64    `json:"iat"`           // when it was signed; Unix seconds
	Execution   string   `json:"drover_execution_id"`
	Runner      string   `json:"drover_runner_id"`
	Environment string   `json:"drover_environment_id,omitempty"`
	Namespace   string   `json:"drover_namespace"` // of the environment
	Argv        []string `json:"argv"`             // its first 4 KiB; a last argument that was cut ends with "…"
	Receipt     Receipt  `json:"receipt"`
}

// SignedReceipt is a receipt that anybody can verify who has the cluster's published keys.
type SignedReceipt struct {
	Token string `json:"token"` // compact JSON web signature of the type drover-receipt+jwt, with EdDSA (Ed25519)
	KeyID string `json:"keyId"` // the published key's
}
