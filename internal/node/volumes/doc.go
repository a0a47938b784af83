// Package volumes has the host volumes that control wants of the node: it makes and deletes their folders, remembers them over restarts,
// and says what became of each request.
//
// Where a volume goes is control's; mounting it is a hook's. Run owns the goroutines: the one in which folders are made and deleted, one
// after the other, those in which plugins do, and the one that looks for plugins.
package volumes
