package archive

import (
	"bufio"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/cluster"
	"github.com/drover-project/drover/secrets"
)

// sealedVersion is the format of archives whose state is encrypted: state.bin is a compressed snapshot in parts of 64 KiB, each encrypted
// with AES-256-GCM under a key of the archive's own. The nonce has the number of the part, and whether it is the last one.
const sealedVersion = 2

// sealedPart is how much of a state is encrypted at once, in bytes.
const sealedPart = 64 << 10

// sealKeySize is how many bytes the key of an archive has.
const sealKeySize = 32

// Keys wraps the keys of encrypted archives as root keys are wrapped; *keyring.Keyring is one.
type Keys interface {
	// WrapKey encrypts a key with each key-encryption key that is in use. Errors: Unavailable if one of them cannot be used.
	WrapKey(ctx context.Context, plain []byte) ([]secrets.Wrapped, error)
	// UnwrapKey decrypts it with any of them. Errors: Unavailable, with what each of them says.
	UnwrapKey(ctx context.Context, wrapped []secrets.Wrapped) ([]byte, error)
}

// sealed is how the image's state is written encrypted: each call writes the same bytes.
func sealed(image Image, key []byte, id string) (func(io.Writer) error, error) {
	aead, err := sealing(key)
	if err != nil {
		return nil, err
	}
	return func(w io.Writer) error {
		out := &sealer{out: w, aead: aead, id: []byte(id)}
		zip, err := gzip.NewWriterLevel(out, gzip.BestSpeed)
		if err != nil {
			return err
		}
		if err := errors.Join(image.Write(zip), zip.Close()); err != nil {
			return err
		}
		return out.part(true)
	}, nil
}

func sealing(key []byte) (cipher.AEAD, error) {
	if len(key) != sealKeySize {
		return nil, drover.Errorf(drover.Invalid, "the archive's key has %d bytes, not %d", len(key), sealKeySize)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// nonce is that of a part. No key encrypts a second archive.
func nonce(n uint64, last bool) []byte {
	out := binary.BigEndian.AppendUint64(nil, n)
	if last {
		return append(out, 0, 0, 0, 1)
	}
	return append(out, 0, 0, 0, 0)
}

// sealer encrypts what is written to it. part(true) is its end.
type sealer struct {
	out  io.Writer
	aead cipher.AEAD
	id   []byte // of the archive, to which the parts are bound
	held []byte // not encrypted yet
	n    uint64 // parts that were
}

// Write implements io.Writer.
func (s *sealer) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		if len(s.held) == sealedPart {
			if err := s.part(false); err != nil {
				return 0, err
			}
		}
		n := min(len(rest), sealedPart-len(s.held))
		s.held = append(s.held, rest[:n]...)
		rest = rest[n:]
	}
	return len(p), nil
}

// part encrypts what is held.
func (s *sealer) part(last bool) error {
	_, err := s.out.Write(s.aead.Seal(nil, nonce(s.n, last), s.held, s.id))
	s.held, s.n = s.held[:0], s.n+1
	return err
}

// opener decrypts what a sealer wrote. What it returns is authentic; io.EOF comes behind the last part alone.
type opener struct {
	in    *bufio.Reader
	aead  cipher.AEAD
	id    []byte
	plain []byte // decrypted, not read yet
	n     uint64
	ended bool
}

func newOpener(in io.Reader, aead cipher.AEAD, id string) *opener {
	return &opener{in: bufio.NewReader(in), aead: aead, id: []byte(id)}
}

// Read implements io.Reader.
func (o *opener) Read(p []byte) (int, error) {
	for len(o.plain) == 0 {
		if o.ended {
			return 0, io.EOF
		}
		text := make([]byte, sealedPart+o.aead.Overhead())
		n, err := io.ReadFull(o.in, text)
		if err == nil {
			_, err = o.in.Peek(1)
		}
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return 0, err
		}
		o.ended = err != nil
		if o.plain, err = o.aead.Open(text[:0], nonce(o.n, o.ended), text[:n], o.id); err != nil {
			return 0, drover.Errorf(drover.Invalid, "the archive is damaged: part %d of its encrypted state does not open", o.n+1)
		}
		o.n++
	}
	n := copy(p, o.plain)
	o.plain = o.plain[n:]
	return n, nil
}

// plain is an archive's state in clear text. Without keys none is opened. Errors: Invalid, Unavailable.
func plain(ctx context.Context, m cluster.Archive, state io.Reader, keys Keys) (io.Reader, error) {
	if len(m.Key) == 0 {
		return state, nil
	}
	with := "the archive is encrypted with " + m.KeyNames()
	if keys == nil {
		return nil, drover.Errorf(drover.Invalid, "%s: only servers that have that key can read it", with)
	}
	key, err := keys.UnwrapKey(ctx, m.Key)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", with, err)
	}
	aead, err := sealing(key)
	if err != nil {
		return nil, err
	}
	zip, err := gzip.NewReader(newOpener(state, aead, m.ID))
	if err != nil {
		return nil, broken(err)
	}
	return &faulty{zip}, nil
}
