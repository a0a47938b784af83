package snapshot

// acl writes the records of access control.
func (x *imageWriter) acl() error {
	if b := x.s.ACLBootstrap(); b != nil {
		if err := x.write(recACLBootstrap, b); err != nil {
			return err
		}
	}
	if err := writeAll(x, recACLPolicy, x.s.ACLPolicies("")); err != nil {
		return err
	}
	if err := writeAll(x, recACLRole, x.s.ACLRoles("")); err != nil {
		return err
	}
	if err := writeAll(x, recACLToken, x.s.ACLTokens("")); err != nil {
		return err
	}
	if err := writeAll(x, recOneTimeToken, x.s.OneTimeTokens()); err != nil {
		return err
	}
	if err := writeAll(x, recAuthMethod, x.s.AuthMethods("")); err != nil {
		return err
	}
	return writeAll(x, recBindingRule, x.s.BindingRules(""))
}

// acl restores the records of access control.
func (x *imageReader) acl(kind recordKind, payload []byte) error {
	switch kind {
	case recACLBootstrap:
		return read(payload, x.t.RestoreACLBootstrap)
	case recACLPolicy:
		return read(payload, x.t.RestoreACLPolicy)
	case recACLRole:
		return read(payload, x.t.RestoreACLRole)
	case recACLToken:
		return read(payload, x.t.RestoreACLToken)
	case recOneTimeToken:
		return read(payload, x.t.RestoreOneTimeToken)
	case recAuthMethod:
		return read(payload, x.t.RestoreAuthMethod)
	case recBindingRule:
		return read(payload, x.t.RestoreBindingRule)
	default:
		return x.secrets(kind, payload)
	}
}
