import FerryNetworking
import FerryProtocol

/// Reads a space without being a device of it. It stores nothing, creates no space, and is in no list
/// of devices.
///
/// All calls throw ``ReplicaError``.
package struct SpaceReader: Sendable {
  private let api: SyncAPI

  /// - Throws: ``ReplicaError/badAddress(_:)``; ``ReplicaError/refused(_:)`` if the space's name is
  ///   not valid.
  package init(
    _ url: String, space: String, token: String?, certificateAuthorities: String? = nil,
    transport: any Transport = SystemTransport(),
    in surroundings: ReplicaSurroundings = .system
  ) throws {
    let address = try ServerAddress(
      checking: url, space: space, certificateAuthorities: certificateAuthorities)
    api = SyncAPI(
      ServerAccess(address: address, token: token), transport: transport,
      surroundings: surroundings, shared: SyncAPI.Shared())
  }

  /// Returns the space with the caller's role; `nil` if there is no such space.
  package func space() async throws -> SpaceInfo? {
    do {
      return try await SyncAPI.explained { try await api.space(create: false) }
    } catch ReplicaError.refused(let problem) where problem.code == .unknownSpace {
      return nil
    }
  }

  package func schema() async throws -> SpaceSchema {
    try await SyncAPI.explained { try await api.schema() }
  }

  /// Returns the reason why a schema could not be put in force now; `nil` if it could. Nothing
  /// changes. Needs an admin's token.
  package func obstacle(to schema: SpaceSchema) async throws -> String? {
    try await SyncAPI.explained {
      let body = try await api.send(.post, "/schema", body: schema.encoded()).body
      var (fits, detail): (Bool, String?) = (false, nil)
      try body.withUnsafeBytes { buffer in
        var reader = JSONReader(buffer)
        try reader.object { (key, reader) throws(MalformedMessage) in
          switch key {
          case "fits": fits = try reader.bool()
          case "detail": detail = try reader.string()
          default: try reader.skip()
          }
        }
      }
      return fits ? nil : detail ?? "the server accepts no such schema"
    }
  }
}

extension SyncAPI {
  /// Runs a request without retries. Its errors are ``ReplicaError``.
  static func explained<Value>(_ body: () async throws -> Value) async throws -> Value {
    do {
      return try await body()
    } catch let error as AskedToWait {
      throw error.explained
    } catch is CancellationError {
      throw CancellationError()
    } catch {
      throw ReplicaError(error)
    }
  }
}
