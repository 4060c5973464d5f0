import FerryPlatform

extension NetworkClient {
  /// Fetches a body into a file; it exists at `path` only when it is complete. It is written under
  /// another name beside `path` and flushed to the disk. Then it replaces the file at `path`.
  ///
  /// The request's policy decides whether an interrupted body is fetched again from scratch. No
  /// cache is asked.
  ///
  /// - Returns: The response after the filters, with an empty body.
  /// - Throws: the errors of ``send(_:progress:)``; kind `fileFailed` if the file cannot be
  ///   written.
  @discardableResult
  public func download(
    _ request: NetworkRequest, to path: String, progress: TransportProgressHandler? = nil
  ) async throws(NetworkError) -> NetworkResponse {
    var request = request
    request.minimumRate = request.minimumRate ?? RequestPace.downloadRateMin
    let log = log(request)
    var plan = try plan(for: request, asksCache: false, log: log)
    var step = plan.start
    do throws(NetworkError) {
      while true {
        let stream = try await open(&plan, from: step, for: request, progress: progress)
        do throws(NetworkError) {
          try await save(stream.body, to: path, log)
          let response = NetworkResponse(status: stream.status, headers: stream.headers)
          log?.end(plan, response)
          return response
        } catch {
          step = plan.next(.failed(error), random: surroundings.random)
        }
      }
    } catch {
      log?.end(plan, error)
      throw error
    }
  }

  private func save(
    _ body: TransportBody, to path: String, _ log: RequestLog?
  ) async throws(NetworkError) {
    let suffix = String(surroundings.random(), radix: 36)
    let disk = ThreadExecutor(name: "ferry-download")
    let file = DownloadFile(path: path, suffix: suffix)
    do {
      try await disk.run { try file.create() }
      for try await part in body {
        log?.received(part.count)
        try await disk.run { try file.append(part) }
      }
      // An early end of a loop is not an error of the body, and must not count as the end of the
      // body.
      try Task.checkCancellation()
      try await disk.run { try file.finish() }
    } catch {
      try? await disk.run { file.discard() }
      throw Self.typed(error)
    }
  }

  private static func typed(_ error: any Error) -> NetworkError {
    switch error {
    case let error as NetworkError: error
    case let error as TransportError: NetworkError(error)
    case is CancellationError: NetworkError(.cancelled, "the download was cancelled")
    default: NetworkError(.other, String(describing: error))
    }
  }
}
