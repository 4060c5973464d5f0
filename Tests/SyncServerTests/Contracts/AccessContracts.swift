import FerryProtocol
import FerrySyncServer

extension StoreContract {
  private static let mark = AuditMark(.anonymous, at: SpaceUnderTest.now)

  private static func hash(_ number: UInt8) -> [UInt8] { [UInt8](repeating: number, count: 32) }

  private static func token(
    _ number: UInt8, _ grants: AccessGrants, createdAt: Int64 = 1, expiresAt: Int64? = nil
  ) -> StoredToken {
    StoredToken(
      id: TokenID(hash: hash(number)), name: "token \(number)", owner: "owner \u{1F600}",
      grants: grants, createdAt: createdAt, expiresAt: expiresAt)
  }

  private static func roles(_ roles: [String: Role]) throws -> AccessGrants {
    let patterns = try roles.map { (try unwrap(SpacePattern($0.key), "a pattern"), $0.value) }
    return try unwrap(AccessGrants(Dictionary(uniqueKeysWithValues: patterns)), "grants")
  }

  static let access = [
    StoreContract("tokens are stored, found by their secret, and removed permanently") { under in
      let store = try await under.open(.standard)
      try require(try await !store.hasEverHadTokens(), "a new store has had tokens")
      let tokens = try Role.allCases.enumerated().map { index, role in
        token(
          UInt8(index + 1), try roles(["made-for-it": role, "list-*": .reader]),
          createdAt: Int64(10 - index), expiresAt: index == 1 ? 99 : nil)
      }
      for (index, token) in tokens.enumerated() {
        try await store.addToken(token, hash: hash(UInt8(index + 1)), by: nil)
      }
      let found = try await store.token(hash: hash(2))
      try require(found, is: KnownToken(tokens[1]), "a token")
      try require(found?.validUntil, is: 99, "its end")
      try require(try await store.token(hash: [9]) == nil, "a token nobody made")
      try require(
        try await store.tokens(after: nil, limit: 100), is: tokens.reversed(),
        "tokens, oldest first")
      try require(try await store.token(tokens[0].id), is: tokens[0], "a token by its identifier")
      let first = try await store.tokens(after: nil, limit: 2)
      try require(first, is: [tokens[2], tokens[1]], "the first tokens")
      try require(
        try await store.tokens(after: first[1].place, limit: 2), is: [tokens[0]], "the others")
      try require(
        try await store.tokens(after: tokens[0].place, limit: 2), is: [], "after the last one")
      try require(try await store.space(named: .name("made-for-it")) != nil, "no space was made")
      try require(try await store.spaces().count, is: 1, "spaces")
      for token in tokens {
        try require(try await store.removeToken(token.id, by: nil), "a token was not removed")
      }
      try require(try await !store.removeToken(tokens[0].id, by: nil), "removed twice")
      try require(try await store.tokens(after: nil, limit: 100).isEmpty, "tokens are left")
      try require(try await store.token(hash: hash(1)) == nil, "a removed token is found")
      try require(try await store.token(tokens[0].id) == nil, "it is found by its identifier")
      try require(try await store.hasEverHadTokens(), "the store forgot that it had tokens")
      await store.close()
    },
    StoreContract("a token keeps the account of its maker, whose tokens are bounded") { under in
      let store = try await under.open(.standard)
      let maker = try unwrap(Principal("jwt:https://id.example#\u{1F600}"), "a principal")
      func made(_ number: UInt8) -> StoredToken {
        StoredToken(
          id: TokenID(hash: hash(number)), account: maker,
          grants: AccessGrants(.name("made"), .reader), createdAt: 1)
      }
      for number in UInt8(1)...2 {
        try require(
          try await store.addToken(made(number), hash: hash(number), by: nil, quota: 2), "a token")
      }
      try require(
        try await !store.addToken(made(3), hash: hash(3), by: mark, quota: 2), "one too many")
      try require(try await store.token(hash: hash(3)) == nil, "it is not kept")
      try require(try await store.audit(AuditQuery()).isEmpty, "it is not in the log")
      let own = token(4, AccessGrants(everywhere: .reader))
      try require(
        try await store.addToken(own, hash: hash(4), by: nil, quota: 2), "one of no account")
      try require(try await store.token(hash: hash(2))?.token, is: made(2), "a token")
      _ = try await store.removeToken(made(1).id, by: nil)
      try require(
        try await store.addToken(made(3), hash: hash(3), by: nil, quota: 2), "in its place")
      await store.close()
    },
    StoreContract("a token has a bounded number of secrets, and the newest ones are valid") {
      under in
      let store = try await under.open(.standard)
      let token = token(1, AccessGrants(everywhere: .admin))
      try await store.addToken(token, hash: hash(1), by: nil)
      let last = UInt8(StoredToken.secretsMax + 5)
      for number in 2...last {
        _ = try await store.rotateToken(
          token.id, hash: hash(number), graceEnd: 1_000 + Int64(number), by: nil)
      }
      try require(
        try await store.secretHashes().count, is: StoredToken.secretsMax, "secrets")
      try require(try await store.token(hash: hash(last)) != nil, "the newest one")
      await store.close()
    },
    StoreContract("a rotated token keeps its identifier, and its former secret expires") { under in
      let store = try await under.open(.standard)
      let token = token(1, AccessGrants(everywhere: .admin))
      try await store.addToken(token, hash: hash(1), by: nil)
      try require(
        try await store.rotateToken(token.id, hash: hash(2), graceEnd: 500, by: nil), "no token")
      try require(try await store.token(hash: hash(1))?.validUntil, is: 500, "the first secret")
      try require(try await store.token(hash: hash(2)), is: KnownToken(token), "the second secret")
      // A later rotation does not prolong a token that already has an end.
      _ = try await store.rotateToken(token.id, hash: hash(3), graceEnd: 900, by: nil)
      try require(try await store.token(hash: hash(1))?.validUntil, is: 500, "the first secret")
      try require(try await store.token(hash: hash(2))?.validUntil, is: 900, "the second secret")
      try require(try await store.token(hash: hash(3))?.validUntil == nil, "the third one ends")
      try require(
        try await Set(store.secretHashes()), is: Set([1, 2, 3].map { hash($0) }), "all secrets")
      try require(try await store.tokens(after: nil, limit: 100).count, is: 1, "tokens")
      _ = try await store.endAudit(before: 600)
      try require(try await store.token(hash: hash(1)) == nil, "an ended secret is kept")
      try require(try await store.token(hash: hash(2)) != nil, "a secret is gone")
      let unknown = TokenID(hash: hash(9))
      try require(
        try await !store.rotateToken(unknown, hash: hash(4), graceEnd: 0, by: nil), "a token")
      try require(try await store.token(hash: hash(4)) == nil, "a secret of no token")
      await store.close()
    },
    StoreContract("a packet that needs an open server is refused as soon as a token was made") {
      under in
      let store = try await under.open(.standard)
      let space = SpaceUnderTest(store: store, space: try await store.createSpace(.name("open")))
      func send(_ devices: [UInt64]) async throws -> [Bool] {
        let packets = devices.map { number in
          var author = Author(number)
          let packet = author.packet([author.insert("record \(number)", ["v": 1])])
          return IncomingPacket(packet, byteCount: 9, needsOpenServer: number % 2 == 1)
        }
        return try await space.ingest(packets, now: SpaceUnderTest.now).results.map { result in
          guard case .refused(let problem) = result else { return true }
          return problem.code != .unauthorized
        }
      }
      try require(try await send([1, 2]), is: [true, true], "taken by an open server")
      let token = token(1, AccessGrants(everywhere: .admin))
      try await store.addToken(token, hash: hash(1), by: nil)
      try require(try await send([3, 4]), is: [false, true], "taken by a server with tokens")
      _ = try await store.removeToken(token.id, by: nil)
      try require(try await send([5, 6]), is: [false, true], "taken by a server that had tokens")
      try require(try await space.page(after: nil).head.head, is: 4, "the head")
      await store.close()
    },
    StoreContract("a packet that comes too late for an open server changes nothing that waits") {
      under in
      var limits = Limits.standard
      limits.packetStateBytes = 100_000
      try await under.withSpace(limits: limits) { space in
        var (owner, author) = (Author(1), Author(2))
        let text = Value.text(String(repeating: "x", count: 40_000))
        for record in ["a", "b", "c"] {
          try await space.send(owner.packet([owner.insert(record, ["v": text])]))
        }
        _ = author.packet([author.insert("d", ["v": 1])])
        try require(
          try await space.send(author.packet([author.update("d", ["v": 2])])).status,
          is: .buffered, "a packet that waits")
        try await space.store.addToken(
          token(1, AccessGrants(everywhere: .admin)), hash: hash(1), by: nil)
        // The next packet touches more states than a packet may: such a packet makes the device cut
        // again.
        let late = author.packet(["a", "b", "c"].map { author.update($0, ["v": 3]) })
        let result = try await space.ingest(
          [IncomingPacket(late, byteCount: 9, needsOpenServer: true)], now: SpaceUnderTest.now
        ).results[0]
        try require(result.problem?.code, is: .unauthorized, "a packet without a token")
        try require(
          try await space.store.buffered(in: space.space.id, of: author.device).packets, is: 1,
          "packets that wait")
      }
    },
    StoreContract("the last use of a token only moves forward") { under in
      let store = try await under.open(.standard)
      let token = token(1, AccessGrants(everywhere: .reader))
      try await store.addToken(token, hash: hash(1), by: nil)
      for use in [70, 90, 80] as [Int64] { try await store.storeTokenUses([token.id: use]) }
      try await store.storeTokenUses([TokenID(hash: hash(9)): 1])
      try require(
        try await store.tokens(after: nil, limit: 100).first?.lastUsedAt, is: 90, "the last use")
      await store.close()
    },
    StoreContract("the audit log contains each administrative change once, and nothing else") {
      under in
      let store = try await under.open(.standard)
      let name = SpaceName.name("audited")
      let space = try await store.createSpace(name, by: mark)
      _ = try await store.createSpace(name, by: mark)
      try await store.setRetention(.forever, of: space.id, by: mark)
      let schema = SpaceSchema(version: 1)
      for _ in 0..<2 {
        _ = try await store.applySchema(
          schema, to: space.id, now: SpaceUnderTest.now, consent: SchemaConsent(), by: mark
        ).get()
      }
      let token = token(1, AccessGrants(.name("audited"), .writer))
      try await store.addToken(token, hash: hash(1), by: mark)
      _ = try await store.rotateToken(token.id, hash: hash(2), graceEnd: 0, by: mark)
      _ = try await store.removeToken(token.id, by: mark)
      _ = try await store.removeToken(token.id, by: mark)
      try await store.append(
        AuditMark(.anonymous, at: SpaceUnderTest.now + 5).entry(.spacePruned, "by hand"))
      let entries = try await store.audit(AuditQuery())
      try require(
        entries.map(\.action),
        is: [
          "space_created", "retention_set", "schema_applied", "token_created", "token_rotated",
          "token_revoked", "space_pruned",
        ], "actions")
      try require(entries.map(\.number), is: entries.map(\.number).sorted(), "the order")
      try require(Set(entries.map(\.principal)), is: ["anonymous"], "principals")
      try require(entries.dropLast().allSatisfy { $0.space == name }, "a space is missing")
      try require(entries.last?.space == nil, "a space nobody named")
      try require(
        try await store.audit(AuditQuery(space: name)).count, is: 6, "entries of the space")
      try require(
        try await store.audit(AuditQuery(space: .name("other"))).isEmpty, "entries of another")
      let later = AuditQuery(since: SpaceUnderTest.now + 1)
      try require(try await store.audit(later).map(\.detail), is: ["by hand"], "later entries")
      let page = AuditQuery(after: entries[1].number, limit: 2)
      try require(try await store.audit(page), is: Array(entries[2...3]), "a page")
      try require(try await store.endAudit(before: SpaceUnderTest.now + 1), is: 6, "ended")
      try require(try await store.audit(AuditQuery()).count, is: 1, "entries left")
      await store.close()
    },
    StoreContract("a failed change leaves nothing in the audit log") { under in
      let store = try await under.open(.standard)
      let token = token(1, AccessGrants(.name("twice"), .writer))
      try await store.addToken(token, hash: hash(1), by: nil)
      do {
        try await store.addToken(token, hash: hash(2), by: mark)
      } catch {
        try require(try await store.audit(AuditQuery()).isEmpty, "an entry without its change")
        try require(try await store.token(hash: hash(2)) == nil, "a secret without its token")
        await store.close()
        return
      }
      throw ContractViolation(description: "a token was made twice")
    },
  ]
}
