import FerryExecutors

extension WorkExecutor {
  /// Runs one blocking closure in turn, with this module's errors.
  func files<T: Sendable>(
    _ body: @escaping @Sendable () throws(FileStoreError) -> T
  ) async throws(FileStoreError) -> T {
    let result: Result<T, FileStoreError>
    do {
      result = try await run {
        do throws(FileStoreError) {
          return .success(try body())
        } catch {
          return .failure(error)
        }
      }
    } catch {
      throw FileStoreError(.files, String(describing: error))
    }
    return try result.get()
  }
}
