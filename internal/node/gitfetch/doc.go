// Package gitfetch gets the tree of a commit out of a git repository, with the machine's own git, for artifacts of tasks.
//
// Neither the repository nor its server is trusted. git runs in a child that this program starts by executing itself again:
// Child, called first thing in main, gives up what git does not need, and then becomes git. It has one folder to write to,
// programs and certificates to read, bounds of memory and of the size of files, and no network but a tunnel to this process.
// With the rights of root it has another user, and namespaces of its own for mounts, processes and network; where the kernel has
// landlock, that bounds files and ports besides. Tunnel dials as the guard of addresses says, whatever a name stands for
// by then, and counts bytes.
//
// No work tree is ever checked out, so neither hooks, filters and attributes nor links of the repository do anything. The
// tree comes as a tar stream, which the caller unpacks under its own bounds. Submodules are named to the caller, who fetches each as a
// repository of its own: git itself follows none.
//
// A Tree owns its processes and its tunnel's goroutines, and ends them in Close.
package gitfetch
