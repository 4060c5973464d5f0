import CSQLite

/// The files of one simulated world behind a SQLite VFS: in memory, with a clock and randomness
/// that are given, and with faults at the steps that the simulation chooses.
///
/// Machines share one disk, each below its own folder. A disk belongs to one thread, together
/// with every connection opened on it; any number of disks live beside each other.
///
/// **What a file holds.** A write is seen by every handle at once, as through a page cache; it
/// is durable after the next successful sync of its file.
///
/// **What a loss of power leaves** of each file: all that was synced, and of the writes and
/// truncations since then, as drawn: nothing, everything, the first few with the one at the cut
/// torn, or each one by its own fate (kept, lost or torn), so that later writes may survive
/// earlier ones. A torn write keeps some of its 512-byte sectors and loses the others; sectors
/// that were never written read as zeros. Bytes outside a write never change
/// (`SQLITE_IOCAP_POWERSAFE_OVERWRITE`). When more than ``unsyncedLimit`` bytes wait, the
/// operating system writes the older half back by itself.
///
/// **Names.** Creations and deletions are kept in order, as in the journal of a file system: the
/// loss of power leaves a first part of them. The first sync of a new file, or a deletion that
/// asks for it, makes those of its folder durable.
///
/// **Not modelled.** Bits that rot; a disk that lies about a sync; pages that a failed sync drops
/// from the cache although a later sync succeeds (here they stay unsynced); faults on temporary
/// files and on shared memory; memory-mapped files; links and permissions. What machines keep
/// besides databases lies in their ``SimulatedFolders``.
package final class SimulatedDisk {
  /// Bytes of unsynced writes, overwritten ones counted, that one file may have.
  package static let unsyncedLimit = 16 << 20

  /// The VFS to open connections with; no other disk alive has the same.
  package let fileSystem: String

  /// Asked before each step on a file with a name; `nil`: it goes well. It may call
  /// ``kill(under:)`` and ``losePower(under:)``; the step then fails.
  package var faults: (Step) -> Fault? = { _ in nil }

  /// The folder or database file whose process dies by a ``Fault/crash`` on this path; the
  /// path's folder unless set.
  package var owner: (_ path: String) -> String = { folder(of: $0) }

  /// Told the path of the step at which a process died by a ``Fault/crash``, when its handles are
  /// dead already; a power cut is made by calling ``losePower(under:)`` here.
  package var onCrash: (_ path: String) -> Void = { _ in }

  let clock: () -> Int64
  let random: () -> UInt64
  var files: [String: StoredFile] = [:]
  var nameChanges = NameChanges()
  /// By their places.
  var folders: [String: SimulatedFolders] = [:]
  var openFiles: [OpenFile] = []
  /// Where processes were killed since the last step began: that step must fail as well.
  var killed: [Place] = []
  let methods: UnsafeMutablePointer<sqlite3_io_methods>
  private let name: UnsafeMutablePointer<CChar>
  private let vfs: UnsafeMutablePointer<sqlite3_vfs>

  /// Registers the VFS. It lives as long as this object, and the object as long as a connection
  /// is open; the closures set on it must not keep it alive.
  ///
  /// - Parameters:
  ///   - name: the beginning of ``fileSystem``.
  ///   - clock: milliseconds since 1970, for SQL's date functions.
  ///   - random: any 64 bits; drawn only when something is torn or lost.
  package init(
    name: String, clock: @escaping () -> Int64, random: @escaping () -> UInt64
  ) {
    self.clock = clock
    self.random = random
    methods = .allocate(capacity: 1)
    methods.initialize(to: fileMethods())
    vfs = .allocate(capacity: 1)
    // The address tells disks of one name apart, without a count that threads would share.
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

  /// Makes SQLite quicker by a fifth in a process in which one thread at a time uses it: without
  /// locks, and with memory from a pool. To be called before anything else is asked of SQLite;
  /// later it does nothing.
  package static func dedicateProcess() {
    var memory = PooledMemory.methods()
    _ = ferry_dedicate_process(&memory)
  }

  /// Starts SQLite's own generator again, which draws the salts of write-ahead logs and SQL's
  /// `random()`. It is one for the process: with it, and with one world at a time in the process,
  /// the files are the same byte for byte in each run. Nothing else depends on the salts.
  package static func seedSQLite(_ seed: UInt32) {
    ferry_seed_randomness(Int32(bitPattern: max(seed, 1)))
  }
}
