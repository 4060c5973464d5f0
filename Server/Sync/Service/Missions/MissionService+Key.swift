import FerryMissionServer
import FerryProtocol
import Foundation

// The key that signs missions. It is read for each publication. Devices refuse a mission signed by
// another key than the first one. So a lost key must not be made again unnoticed, and a restored
// key counts at once.
extension MissionService {
  /// Returns the key; makes it if there is none and nothing of the store was signed.
  package func signingKey() async throws(MissionFailure) -> MissionSigner {
    if let signer = try await readKey() { return signer }
    if let signer = try await anySigner() {
      // Another publisher may have made the key, and published with it, since it was looked for.
      if let made = try await readKey() { return made }
      throw .key(.missing(path: keyFile, signer: signer))
    }
    return try await makeKey()
  }

  /// Returns the key for a mission to publish beside others of the space.
  ///
  /// - Parameter isNew: Whether it may differ from theirs, and be made if it is missing.
  func signingKey(
    beside others: NearbyMissions, isNew: Bool, in space: SpaceSummary, by principal: Principal?
  ) async throws(MissionFailure) -> MissionSigner {
    if isNew {
      let signer = if let known = try await readKey() { known } else { try await makeKey() }
      try await audit(signer, beside: others, in: space, by: principal)
      return signer
    }
    let signer = try await signingKey()
    if let other = others.signer(besides: signer.publicKey) {
      throw .key(.other(path: keyFile, signer: Self.text(other)))
    }
    return signer
  }

  /// Records a change of the signing key in the audit log, before the first signature.
  private func audit(
    _ signer: MissionSigner, beside others: NearbyMissions, in space: SpaceSummary,
    by principal: Principal?
  ) async throws(MissionFailure) {
    guard let principal, others.signer(besides: signer.publicKey) != nil else {
      return
    }
    let entry = AuditMark(principal, at: clock.wall()).entry(
      .keyRenewed, space: space.name, "missions are signed by \(Self.text(signer.publicKey))")
    try await MissionFailure.asking { () async throws(StoreError) in
      try await self.store.append(entry)
    }
  }

  private func readKey() async throws(MissionFailure) -> MissionSigner? {
    if let knownSigner { return knownSigner }
    return try await key { (path) throws(SigningKeyError) in try MissionSigner.existing(file: path)
    }
  }

  private func makeKey() async throws(MissionFailure) -> MissionSigner {
    try await key { (path) throws(SigningKeyError) in try MissionSigner(file: path) }
  }

  private func key<T: Sendable>(
    _ body: @escaping @Sendable (String) throws(SigningKeyError) -> T
  ) async throws(MissionFailure) -> T {
    let path = keyFile
    let found = try await content { (blobs) async throws(BlobError) in
      try await blobs.local.run { (_, _) throws(BlobError) in
        Result { () throws(SigningKeyError) in try body(path) }
      }
    }
    do {
      return try found.get()
    } catch {
      throw .key(error)
    }
  }

  /// Returns a signer of a mission of any space, in base64; `nil` if none is published.
  private func anySigner() async throws(MissionFailure) -> String? {
    try await MissionFailure.asking { () async throws(StoreError) in
      for space in try await self.store.spaces() {
        let page = try await self.store.missions(in: space.id, after: nil, limit: 1)
        if let record = page.records.first { return Self.text(record.signer) }
      }
      return nil
    }
  }

  private static func text(_ key: [UInt8]) -> String { Data(key).base64EncodedString() }
}
