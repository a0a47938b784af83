package federation

import (
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/acl"
	"github.com/drover-project/drover/internal/aesgcm"
)

// Ask is the question of another region.
type Ask struct {
	After uint64 // the index of the last answer; 0 = everything
	Epoch string // of that answer
	// Token is Digest of the replication token, a management token of the authoritative region: who has it is told of access control, too.
	// Nil: without.
	Token []byte
	// Differences says that the asker understands Set.Differs.
	Differences bool
	Nonce       string // makes each answer one of its own: an older one cannot be passed off for it
}

// Answered is the answer, in clear where no token was named. Else it is encrypted with a key that is made of the token, so that
// only who has the token can read it, and nobody else can make one.
type Answered struct {
	Plain  *Objects
	Salt   string // the answer's part of what the key is made of
	Sealed []byte
}

// Digest names a token without telling it.
func Digest(token acl.Secret) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}

// Seal encrypts an answer to the question with the nonce. Each answer has a salt of its own.
func Seal(token acl.Secret, nonce, salt string, plain []byte) ([]byte, error) {
	a, err := answerKey(token, nonce, salt)
	if err != nil {
		return nil, err
	}
	return a.Seal(nil, nil, plain, nil), nil
}

// Open decrypts the answer. Errors: Forbidden if it was made with another token, or for another question.
func Open(token acl.Secret, nonce string, a Answered) ([]byte, error) {
	k, err := answerKey(token, nonce, a.Salt)
	if err != nil {
		return nil, err
	}
	plain, err := k.Open(nil, nil, a.Sealed, nil)
	if err != nil {
		return nil, drover.Errorf(drover.Forbidden, "the answer was not made with the replication token")
	}
	return plain, nil
}

// answerKey is the key of one answer.
func answerKey(token acl.Secret, nonce, salt string) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, []byte(token), []byte(nonce+"\x00"+salt), "drover federation", aesgcm.KeySize)
	if err != nil {
		return nil, drover.Errorf(drover.Internal, "making the key of an answer: %w", err)
	}
	return aesgcm.New(key)
}
