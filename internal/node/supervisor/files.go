package supervisor

import "drover"

// Files gives access to the guest's files.
func (c *Client) Files() drover.Files { return nil }
