import FerryPersistence

extension Replica {
  /// Closes the file. Call it before the file is moved, copied or deleted, or before another
  /// program needs it whole.
  ///
  /// Writes and reads under way or in a queue run to their end first. A sync under way is
  /// cancelled: it throws ``ReplicaError/cancelled``, and the next sync continues from there. A
  /// watch throws ``ReplicaError/closed``. Live queries and the other streams end without an error.
  ///
  /// The last connection to a file moves the write-ahead log into it, and removes the files `-wal`
  /// and `-shm`. They stay if another process or another `Replica` has the file open.
  ///
  /// Later calls throw ``ReplicaError/closed``. To close a closed replica has no effect. The
  /// managers of the replica's missions are closed, too.
  ///
  /// ```swift
  /// await replica.close()
  /// try FileManager.default.moveItem(atPath: replica.path, toPath: "archive/notes.db")
  /// ```
  ///
  /// Do not wait for `close()` in a closure run by a call of this replica: each would wait for the
  /// other. A ``TokenSource`` or a transport of the app delays it if it ignores the cancellation of
  /// the task.
  public func close() async {
    for companion in companions.all { await companion.close() }
    thread.gate.close()
    await thread.gate.ended()
    await thread.finish()
    await readers.close()
    await thread.close()
    companions.memory?.remove()
    for replica in [self] + joined.withLock({ Array($0.values) }) {
      replica.engine.activity.close()
      replica.conflictListeners.close()
    }
  }
}
