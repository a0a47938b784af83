package aesgcm_test

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/drover-project/drover"
	"github.com/drover-project/drover/internal/aesgcm"
)

// TestTextsOfBefore: a nonce of twelve bytes, then what AES-GCM makes with it. Texts are kept for years.
func TestTextsOfBefore(t *testing.T) {
	t.Parallel()
	key, nonce := bytes.Repeat([]byte{7}, aesgcm.KeySize), bytes.Repeat([]byte{9}, 12)
	block, err := aes.NewCipher(key)
	require.NoError(t, err)
	old, err := cipher.NewGCM(block)
	require.NoError(t, err)
	c, err := aesgcm.New(key)
	require.NoError(t, err)
	plain, err := c.Open(nil, nil, old.Seal(nonce, nonce, []byte("text"), []byte("bound")), []byte("bound"))
	require.NoError(t, err)
	require.Equal(t, "text", string(plain))

	text := c.Seal(nil, nil, []byte("text"), []byte("bound"))
	plain, err = old.Open(nil, text[:12], text[12:], []byte("bound"))
	require.NoError(t, err)
	require.Equal(t, "text", string(plain))
	require.NotEqual(t, text, c.Seal(nil, nil, []byte("text"), []byte("bound")))
}

func TestWhatDoesNotOpen(t *testing.T) {
	t.Parallel()
	c, err := aesgcm.New(make([]byte, aesgcm.KeySize))
	require.NoError(t, err)
	text := c.Seal(nil, nil, []byte("text"), []byte("bound"))
	for n := range text {
		_, err := c.Open(nil, nil, text[:n], []byte("bound"))
		require.Error(t, err, "%d bytes of it", n)
	}
	_, err = c.Open(nil, nil, text, []byte("other"))
	require.Error(t, err)
	_, err = aesgcm.New(make([]byte, 16))
	require.Equal(t, drover.Invalid, drover.CodeOf(err))
}
