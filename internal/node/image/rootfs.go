package image

// Rootfs is an image that was made ready. Release it when the sandbox is gone.
type Rootfs struct {
	Ref    string
	Digest string // of the manifest; of the generated files for "host"
	// Lowers are directories for an overlay, the topmost first. Owners in them are those of the image: 0 is its root.
	Lowers []string
	Binds  []Bind // read-only, besides the lowers
	Config Config

	release func()
}

// Bind is a directory or a file of the machine that the sandbox sees.
type Bind struct {
	Source, Target string
	File           bool
}

// Config is what the image says about running it.
type Config struct {
	Env        []string // KEY=value
	Entrypoint []string
	Cmd        []string
	WorkDir    string
	User       string
}

// Release gives the image back. Idempotent.
func (r *Rootfs) Release() {
	if r.release != nil {
		r.release()
		r.release = nil
	}
}
