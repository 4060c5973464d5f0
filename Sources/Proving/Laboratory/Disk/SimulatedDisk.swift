import CFerrySQLite

/// The files of one simulated world behind a SQLite VFS.
///
/// They are in memory, with a given clock and randomness, and with faults at steps chosen by the
/// simulation.
///
/// Machines share one disk, each below a separate folder. A disk belongs to one thread, together
/// with every connection opened on it; any number of disks may exist at once.
///
/// **Content of a file.** Every handle sees a write at once, as through a page cache. A write is
/// durable after the next successful sync of its file.
///
/// **Loss of power.** A file keeps all synced changes. Of the later writes and truncations it keeps
/// one of these, as drawn:
///
/// - nothing, or everything;
/// - the first few, with a torn one at the cut;
/// - a random choice, in which each is kept, lost or torn.
///
/// So later writes may survive earlier ones. A torn write keeps some of its 512-byte sectors and
/// loses the others; unwritten sectors read as zeros. Bytes outside a write never change
/// (`SQLITE_IOCAP_POWERSAFE_OVERWRITE`). If more than ``unsyncedLimit`` bytes wait, the operating
/// system writes the older half by itself.
///
/// **Names.** Creations and deletions are kept in order, as in the journal of a file system: a loss
/// of power keeps a first part of them. The first sync of a new file, or a deletion that asks for
/// it, makes those of its folder durable.
///
/// **Not modelled:**
///
/// - rotting bits, and a disk that reports a sync without making it;
/// - pages dropped from the cache by a failed sync although a later sync succeeds (here they stay
///   unsynced);
/// - faults on temporary files and on shared memory;
/// - memory-mapped files, links and permissions.
///
/// Other files of machines are in their ``SimulatedFolders``.
package final class SimulatedDisk {
  /// The most bytes of unsynced writes of one file, overwritten ones counted.
  package static let unsyncedLimit = 16 << 20

  /// The VFS to open connections with; no other disk alive has the same.
  package let fileSystem: String

  /// Called before each step on a file with a name; `nil`: the step succeeds. It may call
  /// ``kill(under:)`` and ``losePower(under:)``; the step then fails.
  package var faults: (Step) -> Fault? = { _ in nil }

  /// Returns the folder or database file whose process dies by a ``Fault/crash`` on this path; the
  /// path's folder unless set.
  package var owner: (_ path: String) -> String = { folder(of: $0) }

  /// Called with the path of the step at which a process died by a ``Fault/crash``. The process's
  /// handles are dead by then. To make a power cut, call ``losePower(under:)`` here.
  package var onCrash: (_ path: String) -> Void = { _ in }

  let clock: () -> Int64
  let random: () -> UInt64
  var files: [String: StoredFile] = [:]
  var nameChanges = NameChanges()
  /// By their places.
  var folders: [String: SimulatedFolders] = [:]
  var openFiles: [SimulatedFileHandle] = []
  /// Places of processes killed since the last step began: this step must fail as well.
  var killed: [Place] = []
  let methods: UnsafeMutablePointer<sqlite3_io_methods>
  private let name: UnsafeMutablePointer<CChar>
  private let vfs: UnsafeMutablePointer<sqlite3_vfs>

  /// Registers the VFS.
  ///
  /// The VFS lives as long as this object, and the object as long as a connection is open. The
  /// closures set on it must not keep it alive.
  ///
  /// - Parameters:
  ///   - name: The beginning of ``fileSystem``.
  ///   - clock: Milliseconds since 1970, for SQL's date functions.
  ///   - random: Any 64 bits; drawn only when a change is torn or lost.
  package init(
    name: String, clock: @escaping () -> Int64, random: @escaping () -> UInt64
  ) {
    self.clock = clock
    self.random = random
    methods = .allocate(capacity: 1)
    methods.initialize(to: fileMethods())
    vfs = .allocate(capacity: 1)
    // The address distinguishes disks of one name, without a count shared by threads.
    fileSystem = name + "-" + String(UInt(bitPattern: vfs), radix: 16)
    let text = fileSystem.utf8CString
    self.name = .allocate(capacity: text.count)
    for (index, character) in text.enumerated() { self.name[index] = character }
    vfs.initialize(to: fileSystemMethods(name: self.name))
    vfs.pointee.pAppData = Unmanaged.passUnretained(self).toOpaque()
    let code = sqlite3_vfs_register(vfs, 0)
    precondition(code == SQLITE_OK, "SQLite has no memory for a VFS")
  }

  deinit {
    sqlite3_vfs_unregister(vfs)
    vfs.deallocate()
    name.deallocate()
    methods.deallocate()
  }

  /// Makes SQLite a fifth faster in a process in which one thread at a time uses it: without locks,
  /// and with memory from a pool. Call it before any other use of SQLite; later it has no effect.
  package static func dedicateProcess() {
    var memory = PooledMemory.methods()
    _ = ferry_dedicate_process(&memory)
  }
}
