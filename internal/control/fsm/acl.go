package fsm

import (
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/logins"
)

// applyACL dispatches the commands of access control.
func (e *entry) applyACL(c command.Command) (any, error) {
	switch c := c.(type) {
	case *command.BootstrapACL:
		return e.bootstrapACL(c)
	case *command.UpsertACLTokens:
		return e.upsertACLTokens(c.Tokens)
	case *command.DeleteACLTokens:
		return nil, e.deleteACLTokens(c)
	case *command.UpsertACLPolicies:
		e.upsertACLPolicies(c)
		return nil, nil
	case *command.DeleteACLPolicies:
		return nil, e.deleteACLPolicies(c)
	case *command.UpsertACLRoles:
		return e.upsertACLRoles(c)
	case *command.DeleteACLRoles:
		return nil, e.deleteACLRoles(c)
	case *command.PutOneTimeToken:
		return nil, e.putOneTimeToken(c)
	case *command.ExchangeOneTimeToken:
		return e.exchangeOneTimeToken(c)
	case *command.ExpireACLTokens:
		return e.expireACLTokens(c), nil
	}
	return e.applyLogins(c)
}

// tellACL tells that something of access control was stored or deleted. The payload has no secret.
func (e *entry) tellACL(topic, done, key string, payload any) {
	e.told = append(e.told, e.event(topic, topic+done, key, "", nil, topic, payload))
}

const (
	upserted = "Upserted"
	deleted  = "Deleted"
)

// bootstrapACL stores the first management token and the index at which it was made.
func (e *entry) bootstrapACL(c *command.BootstrapACL) (*acl.Token, error) {
	next := acl.Bootstrap{CreateIndex: e.index, ModifyIndex: e.index}
	if old := e.txn.ACLBootstrap(); old != nil {
		switch {
		case c.ResetIndex == 0:
			return nil, drover.Errorf(drover.Conflict, "ACL bootstrap already done (reset index: %d)", old.ModifyIndex)
		case c.ResetIndex != old.ModifyIndex:
			return nil, drover.Errorf(drover.Conflict, "Invalid bootstrap reset index (specified %d, reset index: %d)",
				c.ResetIndex, old.ModifyIndex)
		}
		next.CreateIndex = old.CreateIndex
	}
	stored, err := e.upsertACLTokens([]*acl.Token{c.Token})
	if err != nil {
		return nil, err
	}
	e.txn.PutACLBootstrap(&next)
	return stored[0], nil
}

// upsertACLTokens stores all the tokens or none.
func (e *entry) upsertACLTokens(tokens []*acl.Token) ([]*acl.Token, error) {
	secrets := map[acl.Secret]bool{}
	out := make([]*acl.Token, len(tokens))
	for i, k := range tokens {
		if k == nil || k.AccessorID == "" || k.SecretID == "" {
			return nil, drover.Errorf(drover.Invalid, "ACL token: it must have an accessor and a secret")
		}
		if slices.ContainsFunc(out[:i], func(o *acl.Token) bool { return o.AccessorID == k.AccessorID }) {
			return nil, drover.Errorf(drover.Invalid, "ACL token %s is given twice", k.AccessorID)
		}
		next := *k
		next.CreateIndex, next.ModifyIndex = e.index, e.index
		if old := e.txn.ACLToken(k.AccessorID); old != nil {
			if old.SecretID != k.SecretID {
				return nil, drover.Errorf(drover.Conflict, "ACL token %s: its secret cannot change", k.AccessorID)
			}
			next.CreateIndex, next.CreateTime = old.CreateIndex, old.CreateTime
			next.Global, next.ExpirationTime, next.ExpirationTTL = old.Global, old.ExpirationTime, old.ExpirationTTL
		}
		other := e.txn.ACLTokenBySecret(k.SecretID)
		if secrets[k.SecretID] || other != nil && other.AccessorID != k.AccessorID {
			return nil, drover.Errorf(drover.Conflict, "ACL token %s: its secret is in use: give another one", k.AccessorID)
		}
		secrets[k.SecretID] = true
		for _, r := range k.Roles {
			if e.txn.ACLRole(r.ID) == nil {
				return nil, drover.Errorf(drover.Invalid, "cannot find role %s", r.ID)
			}
		}
		out[i] = &next
	}
	for _, k := range out {
		e.txn.PutACLToken(k)
		e.tellACL(drover.TopicACLToken, upserted, k.AccessorID, k.WithoutSecret())
	}
	return out, nil
}

// forgetACLToken removes the token and tells of it.
func (e *entry) forgetACLToken(k *acl.Token) {
	e.txn.DeleteACLToken(k)
	e.tellACL(drover.TopicACLToken, deleted, k.AccessorID, k.WithoutSecret())
}

// deleteACLTokens removes all the tokens or none.
func (e *entry) deleteACLTokens(c *command.DeleteACLTokens) error {
	doomed, err := logins.All(c.AccessorIDs, e.txn.ACLToken, "token")
	for _, k := range doomed {
		e.forgetACLToken(k)
	}
	return err
}

// upsertACLPolicies stores the policies. Access has parsed their rules.
func (e *entry) upsertACLPolicies(c *command.UpsertACLPolicies) {
	for _, p := range c.Policies {
		next := *p
		next.CreateIndex, next.ModifyIndex = e.index, e.index
		if old := e.txn.ACLPolicy(p.Name); old != nil {
			next.CreateIndex = old.CreateIndex
		}
		e.txn.PutACLPolicy(&next)
		e.tellACL(drover.TopicACLPolicy, upserted, next.Name, &next)
	}
}

// deleteACLPolicies removes all the policies or none.
func (e *entry) deleteACLPolicies(c *command.DeleteACLPolicies) error {
	doomed, err := logins.All(c.Names, e.txn.ACLPolicy, "policy")
	for _, p := range doomed {
		e.txn.DeleteACLPolicy(p)
		e.tellACL(drover.TopicACLPolicy, deleted, p.Name, p)
	}
	return err
}

// upsertACLRoles stores all the roles or none.
func (e *entry) upsertACLRoles(c *command.UpsertACLRoles) ([]*acl.Role, error) {
	names, given := map[string]bool{}, map[string]bool{} // a name that is given up together with its being taken is free
	for _, r := range c.Roles {
		if r != nil {
			given[r.ID] = true
		}
	}
	out := make([]*acl.Role, len(c.Roles))
	for i, r := range c.Roles {
		if r == nil || r.ID == "" {
			return nil, drover.Errorf(drover.Invalid, "ACL role: it must have an ID")
		}
		if slices.ContainsFunc(out[:i], func(o *acl.Role) bool { return o.ID == r.ID }) {
			return nil, drover.Errorf(drover.Invalid, "ACL role %s is given twice", r.ID)
		}
		other := e.txn.ACLRoleByName(r.Name)
		if names[r.Name] || other != nil && !given[other.ID] {
			return nil, drover.Errorf(drover.Conflict, "role with name %s already exists", r.Name)
		}
		names[r.Name] = true
		for _, p := range r.Policies {
			if e.txn.ACLPolicy(p.Name) == nil {
				return nil, drover.Errorf(drover.Invalid, "cannot find policy %s", p.Name)
			}
		}
		next := *r
		next.CreateIndex, next.ModifyIndex = e.index, e.index
		if old := e.txn.ACLRole(r.ID); old != nil {
			next.CreateIndex = old.CreateIndex
		}
		out[i] = &next
	}
	for _, r := range out {
		e.txn.PutACLRole(r)
		e.tellACL(drover.TopicACLRole, upserted, r.ID, r)
	}
	return out, nil
}

// deleteACLRoles removes all the roles or none.
func (e *entry) deleteACLRoles(c *command.DeleteACLRoles) error {
	doomed, err := logins.All(c.IDs, e.txn.ACLRole, "role")
	for _, r := range doomed {
		e.txn.DeleteACLRole(r)
		e.tellACL(drover.TopicACLRole, deleted, r.ID, r)
	}
	return err
}

// putOneTimeToken stores a one-time token. It is told to nobody.
func (e *entry) putOneTimeToken(c *command.PutOneTimeToken) error {
	if c.Token == nil || c.Token.OneTimeSecretID == "" {
		return drover.Errorf(drover.Invalid, "one-time token: it must have a secret")
	}
	if other := e.txn.OneTimeTokenBySecret(c.Token.OneTimeSecretID); other != nil && other.AccessorID != c.Token.AccessorID {
		return drover.Errorf(drover.Conflict, "one-time token: its secret is in use: give another one")
	}
	if e.txn.ACLToken(c.Token.AccessorID) == nil {
		return drover.Errorf(drover.NotFound, "ACL token not found")
	}
	next := *c.Token
	next.CreateIndex, next.ModifyIndex = e.index, e.index
	e.txn.PutOneTimeToken(&next)
	return nil
}

// exchangeOneTimeToken uses the one-time token up, and returns the token that it stands for. Whoever guesses learns nothing of why not.
func (e *entry) exchangeOneTimeToken(c *command.ExchangeOneTimeToken) (*acl.Token, error) {
	now := time.Unix(0, c.Time)
	once := e.txn.OneTimeTokenBySecret(c.Secret)
	if once == nil || once.Expired(now) {
		return nil, drover.Errorf(drover.Forbidden, "Permission denied")
	}
	k := e.txn.ACLToken(once.AccessorID)
	if k == nil || k.Expired(now) {
		return nil, drover.Errorf(drover.Forbidden, "Permission denied")
	}
	e.txn.DeleteOneTimeToken(once)
	return k, nil
}

// expireACLTokens removes what has expired, and counts it.
func (e *entry) expireACLTokens(c *command.ExpireACLTokens) int {
	now, count := time.Unix(0, c.Time), 0
	for _, accessor := range c.AccessorIDs {
		if k := e.txn.ACLToken(accessor); k != nil && k.Expired(now) {
			e.forgetACLToken(k)
			count++
		}
	}
	var gone []*acl.OneTimeToken
	for once := range e.txn.OneTimeTokens() {
		if !once.Expired(now) {
			break // they are in the order of their ends
		}
		gone = append(gone, once)
	}
	for _, once := range gone {
		e.txn.DeleteOneTimeToken(once)
	}
	return count + len(gone)
}
