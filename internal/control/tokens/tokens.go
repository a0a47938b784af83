package tokens

import (
	"slices"
	"time"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/control/command"
	"github.com/drover-project/drover/internal/control/logins"
	"github.com/drover-project/drover/internal/control/store"
)

// applying is one command being applied, and what it changed so far.
type applying struct {
	txn     *store.Txn
	index   uint64
	changes []logins.Change
}

// Apply applies the command at the index, all of it or nothing, and reports whether it is one of this package's. Errors: those of the
// commands.
func Apply(t *store.Txn, index uint64, c command.Command) (result any, changes []logins.Change, known bool, err error) {
	a := &applying{txn: t, index: index}
	result, known, err = a.apply(c)
	return result, a.changes, known, err
}

func (a *applying) apply(c command.Command) (result any, known bool, err error) {
	switch c := c.(type) {
	case *command.BootstrapACL:
		result, err = a.bootstrap(c)
	case *command.UpsertACLTokens:
		result, err = a.upsertTokens(c.Tokens)
	case *command.DeleteACLTokens:
		err = a.deleteTokens(c)
	case *command.UpsertACLPolicies:
		a.upsertPolicies(c)
	case *command.DeleteACLPolicies:
		err = a.deletePolicies(c)
	case *command.UpsertACLRoles:
		result, err = a.upsertRoles(c)
	case *command.DeleteACLRoles:
		err = a.deleteRoles(c)
	case *command.PutOneTimeToken:
		err = a.putOneTimeToken(c)
	case *command.ExchangeOneTimeToken:
		result, err = a.exchangeOneTimeToken(c)
	case *command.ExpireACLTokens:
		result = a.expire(c)
	default:
		return nil, false, nil
	}
	return result, true, err
}

// tell notes that something was stored or deleted. What is told has no secret.
func (a *applying) tell(topic, key string, now any) {
	a.changes = append(a.changes, logins.Change{Topic: topic, Key: key, Now: now})
}

// forgot notes that something was deleted.
func (a *applying) forgot(topic, key string, was any) {
	a.changes = append(a.changes, logins.Change{Topic: topic, Key: key, Now: was, Gone: true})
}

// bootstrap stores the first management token and the index at which it was made.
func (a *applying) bootstrap(c *command.BootstrapACL) (*acl.Token, error) {
	next := acl.Bootstrap{CreateIndex: a.index, ModifyIndex: a.index}
	if old := a.txn.ACLBootstrap(); old != nil {
		switch {
		case c.ResetIndex == 0:
			return nil, drover.Errorf(drover.Conflict, "ACL bootstrap already done (reset index: %d)", old.ModifyIndex)
		case c.ResetIndex != old.ModifyIndex:
			return nil, drover.Errorf(drover.Conflict, "Invalid bootstrap reset index (specified %d, reset index: %d)",
				c.ResetIndex, old.ModifyIndex)
		}
		next.CreateIndex = old.CreateIndex
	}
	stored, err := a.upsertTokens([]*acl.Token{c.Token})
	if err != nil {
		return nil, err
	}
	a.txn.PutACLBootstrap(&next)
	return stored[0], nil
}

// upsertTokens stores all the tokens or none.
func (a *applying) upsertTokens(tokens []*acl.Token) ([]*acl.Token, error) {
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
		next.CreateIndex, next.ModifyIndex = a.index, a.index
		if old := a.txn.ACLToken(k.AccessorID); old != nil {
			if old.SecretID != k.SecretID {
				return nil, drover.Errorf(drover.Conflict, "ACL token %s: its secret cannot change", k.AccessorID)
			}
			next.CreateIndex, next.CreateTime = old.CreateIndex, old.CreateTime
			next.Global, next.ExpirationTime, next.ExpirationTTL = old.Global, old.ExpirationTime, old.ExpirationTTL
		}
		other := a.txn.ACLTokenBySecret(k.SecretID)
		if secrets[k.SecretID] || other != nil && other.AccessorID != k.AccessorID {
			return nil, drover.Errorf(drover.Conflict, "ACL token %s: its secret is in use: give another one", k.AccessorID)
		}
		secrets[k.SecretID] = true
		for _, r := range k.Roles {
			if a.txn.ACLRole(r.ID) == nil {
				return nil, drover.Errorf(drover.Invalid, "cannot find role %s", r.ID)
			}
		}
		out[i] = &next
	}
	for _, k := range out {
		a.txn.PutACLToken(k)
		a.tell(drover.TopicACLToken, k.AccessorID, k.WithoutSecret())
	}
	return out, nil
}

// forgetToken removes the token and tells of it.
func (a *applying) forgetToken(k *acl.Token) {
	a.txn.DeleteACLToken(k)
	a.forgot(drover.TopicACLToken, k.AccessorID, k.WithoutSecret())
}

// deleteTokens removes all the tokens or none.
func (a *applying) deleteTokens(c *command.DeleteACLTokens) error {
	doomed, err := logins.All(c.AccessorIDs, a.txn.ACLToken, "token")
	for _, k := range doomed {
		a.forgetToken(k)
	}
	return err
}

// upsertPolicies stores the policies. Access has parsed their rules.
func (a *applying) upsertPolicies(c *command.UpsertACLPolicies) {
	for _, p := range c.Policies {
		next := *p
		next.CreateIndex, next.ModifyIndex = a.index, a.index
		if old := a.txn.ACLPolicy(p.Name); old != nil {
			next.CreateIndex = old.CreateIndex
		}
		a.txn.PutACLPolicy(&next)
		a.tell(drover.TopicACLPolicy, next.Name, &next)
	}
}

// deletePolicies removes all the policies or none.
func (a *applying) deletePolicies(c *command.DeleteACLPolicies) error {
	doomed, err := logins.All(c.Names, a.txn.ACLPolicy, "policy")
	for _, p := range doomed {
		a.txn.DeleteACLPolicy(p)
		a.forgot(drover.TopicACLPolicy, p.Name, p)
	}
	return err
}

// upsertRoles stores all the roles or none.
func (a *applying) upsertRoles(c *command.UpsertACLRoles) ([]*acl.Role, error) {
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
		other := a.txn.ACLRoleByName(r.Name)
		if names[r.Name] || other != nil && !given[other.ID] {
			return nil, drover.Errorf(drover.Conflict, "role with name %s already exists", r.Name)
		}
		names[r.Name] = true
		for _, p := range r.Policies {
			if a.txn.ACLPolicy(p.Name) == nil {
				return nil, drover.Errorf(drover.Invalid, "cannot find policy %s", p.Name)
			}
		}
		next := *r
		next.CreateIndex, next.ModifyIndex = a.index, a.index
		if old := a.txn.ACLRole(r.ID); old != nil {
			next.CreateIndex = old.CreateIndex
		}
		out[i] = &next
	}
	for _, r := range out {
		a.txn.PutACLRole(r)
		a.tell(drover.TopicACLRole, r.ID, r)
	}
	return out, nil
}

// deleteRoles removes all the roles or none.
func (a *applying) deleteRoles(c *command.DeleteACLRoles) error {
	doomed, err := logins.All(c.IDs, a.txn.ACLRole, "role")
	for _, r := range doomed {
		a.txn.DeleteACLRole(r)
		a.forgot(drover.TopicACLRole, r.ID, r)
	}
	return err
}

// putOneTimeToken stores a one-time token. It is told to nobody.
func (a *applying) putOneTimeToken(c *command.PutOneTimeToken) error {
	if c.Token == nil || c.Token.OneTimeSecretID == "" {
		return drover.Errorf(drover.Invalid, "one-time token: it must have a secret")
	}
	if other := a.txn.OneTimeTokenBySecret(c.Token.OneTimeSecretID); other != nil && other.AccessorID != c.Token.AccessorID {
		return drover.Errorf(drover.Conflict, "one-time token: its secret is in use: give another one")
	}
	if a.txn.ACLToken(c.Token.AccessorID) == nil {
		return drover.Errorf(drover.NotFound, "ACL token not found")
	}
	next := *c.Token
	next.CreateIndex, next.ModifyIndex = a.index, a.index
	a.txn.PutOneTimeToken(&next)
	return nil
}

// exchangeOneTimeToken uses the one-time token up, and returns the token that it stands for. Whoever guesses learns nothing of why not.
func (a *applying) exchangeOneTimeToken(c *command.ExchangeOneTimeToken) (*acl.Token, error) {
	now := time.Unix(0, c.Time)
	once := a.txn.OneTimeTokenBySecret(c.Secret)
	if once == nil || once.Expired(now) {
		return nil, drover.Errorf(drover.Forbidden, "Permission denied")
	}
	k := a.txn.ACLToken(once.AccessorID)
	if k == nil || k.Expired(now) {
		return nil, drover.Errorf(drover.Forbidden, "Permission denied")
	}
	a.txn.DeleteOneTimeToken(once)
	return k, nil
}

// expire removes what has expired, and counts it.
func (a *applying) expire(c *command.ExpireACLTokens) int {
	now, count := time.Unix(0, c.Time), 0
	for _, accessor := range c.AccessorIDs {
		if k := a.txn.ACLToken(accessor); k != nil && k.Expired(now) {
			a.forgetToken(k)
			count++
		}
	}
	var gone []*acl.OneTimeToken
	for once := range a.txn.OneTimeTokens() {
		if !once.Expired(now) {
			break // they are in the order of their ends
		}
		gone = append(gone, once)
	}
	for _, once := range gone {
		a.txn.DeleteOneTimeToken(once)
	}
	return count + len(gone)
}
