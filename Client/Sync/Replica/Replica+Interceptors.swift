import FerryPersistence

extension Replica {
  /// Runs interceptors after changes of other devices, in the transaction of the pull, for all
  /// spaces of the file. Without a call, pulled changes run none.
  ///
  /// Each changed row is one action after the whole pull: an insertion or update with the columns
  /// of the row, or a deletion with the columns of the key. Interceptors before an action do not
  /// run: the change is decided already, and another one here would make devices differ. Writes of
  /// an interceptor are recorded as the user's are. An error is logged, and the change stays. If
  /// the pull is tried again, so are the interceptors.
  ///
  /// ```swift
  /// try await replica.interceptPulledChanges(with: [
  ///   Interceptor(.after, .insert, .update, table: "notes") { action, database in
  ///     try database.execute("INSERT INTO unread VALUES (?)", [action.columns["id"] ?? .null])
  ///   }
  /// ])
  /// ```
  ///
  /// - Parameter interceptors: those of the former call end.
  public func interceptPulledChanges(with interceptors: [Interceptor]) async throws {
    try await thread.call { $0.spaces.pullInterceptors = interceptors }
  }
}
