package drover

// AllocFileInfo is a file of an allocation's folder on the node.
type AllocFileInfo struct {
	Name        string
	IsDir       bool
	Size        int64
	FileMode    string
	ModTime     string // RFC 3339
	ContentType string `json:",omitempty"`
}
