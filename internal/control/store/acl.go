package store

import (
	"crypto/sha256"
	"fmt"
	"iter"
	"time"

	"github.com/hashicorp/go-memdb"

	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/tables"
)

// The indexes of tokens by secret and by end, of roles by name, and of binding rules by auth method. Policies that are bound to jobs
// have indexJob.
const (
	indexSecret = "secret"
	indexEnd    = "end"
	indexName   = "name"
	indexMethod = "method"
)

// secretKey is what an index has of a secret: its digest, so that how long a lookup takes says nothing of the secrets that are there.
func secretKey(s acl.Secret) string {
	if s == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(s))
	return string(sum[:])
}

// endKey sorts by time.
func endKey(end time.Time, id string) string {
	return fmt.Sprintf("%016x", uint64(end.UnixNano())) + term(id)
}

// aclTables are those of access control.
func aclTables() []*memdb.TableSchema {
	return []*memdb.TableSchema{
		table(tables.ACLTokens, func(t *acl.Token) string { return term(t.AccessorID) },
			index(indexSecret, func(t *acl.Token) string { return secretKey(t.SecretID) }),
			index(indexEnd, func(t *acl.Token) string {
				if t.ExpirationTime == nil {
					return ""
				}
				return endKey(*t.ExpirationTime, t.AccessorID)
			})),
		table(tables.ACLPolicies, func(p *acl.Policy) string { return term(p.Name) },
			index(indexJob, func(p *acl.Policy) string {
				if p.JobACL == nil {
					return ""
				}
				return jobPrefix(p.JobACL.Namespace, p.JobACL.JobID) + term(p.Name)
			})),
		table(tables.ACLRoles, func(r *acl.Role) string { return term(r.ID) },
			index(indexName, func(r *acl.Role) string { return term(r.Name) })),
		table(tables.AuthMethods, func(m *acl.AuthMethod) string { return term(m.Name) }),
		table(tables.BindingRules, func(b *acl.BindingRule) string { return term(b.ID) },
			index(indexMethod, func(b *acl.BindingRule) string { return term(b.AuthMethod) + term(b.ID) })),
		table(tables.OneTimeTokens, func(t *acl.OneTimeToken) string { return term(t.AccessorID) },
			index(indexSecret, func(t *acl.OneTimeToken) string { return secretKey(t.OneTimeSecretID) }),
			index(indexEnd, func(t *acl.OneTimeToken) string { return endKey(t.ExpiresAt, t.AccessorID) })),
		table(tables.ACLBootstrap, func(*acl.Bootstrap) string { return "bootstrap" }),
	}
}

// ACLToken returns the token or nil.
func (r *reader) ACLToken(accessor string) *acl.Token {
	return get[acl.Token](r, tables.ACLTokens, term(accessor))
}

// ACLTokenBySecret returns the token or nil.
func (r *reader) ACLTokenBySecret(secret acl.Secret) *acl.Token {
	return first[acl.Token](r, tables.ACLTokens, indexSecret, secretKey(secret))
}

// ACLTokenByDigest returns the token of whose secret the SHA-256 is, or nil. The beginning of a digest finds nothing.
func (r *reader) ACLTokenByDigest(digest []byte) *acl.Token {
	if len(digest) != sha256.Size {
		return nil
	}
	return first[acl.Token](r, tables.ACLTokens, indexSecret, string(digest))
}

// ACLTokens yields the tokens whose accessors begin with prefix, ordered by accessor.
func (r *reader) ACLTokens(prefix string) iter.Seq[*acl.Token] {
	return scan[acl.Token](r, tables.ACLTokens, indexID, prefix)
}

// EndingACLTokens yields the tokens that have an end, the earliest first.
func (r *reader) EndingACLTokens() iter.Seq[*acl.Token] {
	return scan[acl.Token](r, tables.ACLTokens, indexEnd, "")
}

// ACLPolicy returns the policy or nil.
func (r *reader) ACLPolicy(name string) *acl.Policy {
	return get[acl.Policy](r, tables.ACLPolicies, term(name))
}

// ACLPolicies yields the policies whose names begin with prefix, ordered by name.
func (r *reader) ACLPolicies(prefix string) iter.Seq[*acl.Policy] {
	return scan[acl.Policy](r, tables.ACLPolicies, indexID, prefix)
}

// ACLPoliciesOfJob yields the policies that are bound to the job, or to a group or a task of it, ordered by name.
func (r *reader) ACLPoliciesOfJob(namespace, id string) iter.Seq[*acl.Policy] {
	return scan[acl.Policy](r, tables.ACLPolicies, indexJob, jobPrefix(namespace, id))
}

// ACLRole returns the role or nil.
func (r *reader) ACLRole(id string) *acl.Role { return get[acl.Role](r, tables.ACLRoles, term(id)) }

// ACLRoleByName returns the role or nil.
func (r *reader) ACLRoleByName(name string) *acl.Role {
	return first[acl.Role](r, tables.ACLRoles, indexName, term(name))
}

// ACLRoles yields the roles whose ids begin with prefix, ordered by id.
func (r *reader) ACLRoles(prefix string) iter.Seq[*acl.Role] {
	return scan[acl.Role](r, tables.ACLRoles, indexID, prefix)
}

// OneTimeToken returns the token's, or nil.
func (r *reader) OneTimeToken(accessor string) *acl.OneTimeToken {
	return get[acl.OneTimeToken](r, tables.OneTimeTokens, term(accessor))
}

// OneTimeTokenBySecret returns the one-time token or nil.
func (r *reader) OneTimeTokenBySecret(secret acl.Secret) *acl.OneTimeToken {
	return first[acl.OneTimeToken](r, tables.OneTimeTokens, indexSecret, secretKey(secret))
}

// OneTimeTokens yields all of them, the one that expires first in front.
func (r *reader) OneTimeTokens() iter.Seq[*acl.OneTimeToken] {
	return scan[acl.OneTimeToken](r, tables.OneTimeTokens, indexEnd, "")
}

// ACLBootstrap returns when access control was bootstrapped, nil if it was not.
func (r *reader) ACLBootstrap() *acl.Bootstrap {
	return get[acl.Bootstrap](r, tables.ACLBootstrap, "bootstrap")
}

// PutACLToken stores the token.
func (t *Txn) PutACLToken(k *acl.Token) { t.put(tables.ACLTokens, k.AccessorID, k) }

// DeleteACLToken forgets the token, and its one-time token.
func (t *Txn) DeleteACLToken(k *acl.Token) {
	t.drop(tables.ACLTokens, k.AccessorID, k)
	if once := t.OneTimeToken(k.AccessorID); once != nil {
		t.DeleteOneTimeToken(once)
	}
}

// PutACLPolicy stores the policy.
func (t *Txn) PutACLPolicy(p *acl.Policy) { t.put(tables.ACLPolicies, p.Name, p) }

// DeleteACLPolicy forgets the policy.
func (t *Txn) DeleteACLPolicy(p *acl.Policy) { t.drop(tables.ACLPolicies, p.Name, p) }

// PutACLRole stores the role.
func (t *Txn) PutACLRole(r *acl.Role) { t.put(tables.ACLRoles, r.ID, r) }

// DeleteACLRole forgets the role.
func (t *Txn) DeleteACLRole(r *acl.Role) { t.drop(tables.ACLRoles, r.ID, r) }

// PutOneTimeToken stores the one-time token.
func (t *Txn) PutOneTimeToken(k *acl.OneTimeToken) { t.put(tables.OneTimeTokens, k.AccessorID, k) }

// DeleteOneTimeToken forgets the one-time token.
func (t *Txn) DeleteOneTimeToken(k *acl.OneTimeToken) { t.drop(tables.OneTimeTokens, k.AccessorID, k) }

// PutACLBootstrap stores when access control was bootstrapped.
func (t *Txn) PutACLBootstrap(b *acl.Bootstrap) { t.put(tables.ACLBootstrap, "", b) }

// RestoreACLToken stores a token.
func (t *Txn) RestoreACLToken(k *acl.Token) { t.insert(tables.ACLTokens, k) }

// RestoreACLPolicy stores a policy.
func (t *Txn) RestoreACLPolicy(p *acl.Policy) { t.insert(tables.ACLPolicies, p) }

// RestoreACLRole stores a role.
func (t *Txn) RestoreACLRole(r *acl.Role) { t.insert(tables.ACLRoles, r) }

// RestoreOneTimeToken stores a one-time token.
func (t *Txn) RestoreOneTimeToken(k *acl.OneTimeToken) { t.insert(tables.OneTimeTokens, k) }

// RestoreACLBootstrap stores when access control was bootstrapped.
func (t *Txn) RestoreACLBootstrap(b *acl.Bootstrap) { t.insert(tables.ACLBootstrap, b) }
