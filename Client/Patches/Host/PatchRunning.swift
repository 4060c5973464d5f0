/// One call of a patch.
struct PatchRequest: Sendable {
  let script: String
  /// JSON on one line.
  let input: [UInt8]
  /// The services that the script may call.
  let services: Set<String>
  let limits: PatchLimits
}

/// Calls a service of the app: the name and arguments as JSON, and the answer as JSON.
typealias ServiceCaller = @Sendable (String, [UInt8]) async throws -> [UInt8]

/// Runs calls of patches. A test replaces the processes by a script of its own.
protocol PatchRunning: Sendable {
  /// Returns the result as unchecked JSON. When the task is cancelled, it returns soon, with any
  /// result.
  func run(
    _ request: PatchRequest, services: @escaping ServiceCaller
  ) async -> Result<[UInt8], PatchFailure>
}
