import FerryPersistence

extension Replica {
  /// Stops all work on the file. Afterwards this process holds no lock of a transaction or a sync.
  /// Call it when the system may stop the process, and ``resume()`` when the process is active
  /// again.
  ///
  /// iOS ends a suspended app that holds a lock on a file of a shared container, with the code
  /// `0xdead10cc`.
  ///
  /// - A running statement ends, the transaction is rolled back, and the call throws
  ///   ``ReplicaError/suspended``. Queued calls and new calls throw it as well.
  /// - A sync throws ``ReplicaError/cancelled``. The next one continues from there.
  /// - Watches, live queries and other streams wait for ``resume()``, and then continue.
  ///
  /// New work is stopped at once. The call returns when the work under way has ended; a commit
  /// under way is completed. It cannot interrupt a closure between two statements. A write waiting
  /// for another process's lock may need up to 10 seconds to end; it holds no lock meanwhile. A
  /// ``TokenSource`` or a transport of the app delays it if it ignores the cancellation of the
  /// task. The managers of the replica's missions are suspended, too.
  ///
  /// ```swift
  /// func applicationDidEnterBackground(_ application: UIApplication) {
  ///   let work = application.beginBackgroundTask()
  ///   Task {
  ///     await replica.suspend()
  ///     application.endBackgroundTask(work)
  ///   }
  /// }
  /// func applicationWillEnterForeground(_ application: UIApplication) { replica.resume() }
  /// ```
  public func suspend() async {
    for companion in companions.all { await companion.suspend() }
    thread.gate.suspend()
    await thread.gate.ended()
    await thread.finish()
    await readers.finish()
  }

  /// Lets a suspended replica work again. It has no effect if the replica is closed or not
  /// suspended.
  public func resume() {
    thread.gate.resume()
    let resting = companions.all
    if resting.isEmpty { return }
    Task { for companion in resting { await companion.resume() } }
  }
}
