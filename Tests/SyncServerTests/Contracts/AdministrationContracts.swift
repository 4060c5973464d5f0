import FerryProtocol
import FerrySyncServer

extension StoreContract {
  static let administration = [
    StoreContract("tasks that create the same spaces at the same time get the same spaces") {
      under in
      let store = try await under.open(.standard)
      let second = under.isShared ? try await under.open(.standard) : store
      let spaces = try await withThrowingTaskGroup(of: SpaceSummary.self) { group in
        for number in 0..<48 {
          let store = number.isMultiple(of: 2) ? store : second
          group.addTask { try await store.createSpace(.name("s\(number % 3)")) }
        }
        return try await group.reduce(into: Set<Int64>()) { $0.insert($1.id) }
      }
      try require(spaces.count, is: 3, "spaces")
      let listed = try await store.spaces()
      try require(listed.map(\.name.value), is: ["s0", "s1", "s2"], "the spaces by name")
      try require(Set(listed.map(\.id)), is: spaces, "their numbers")
      try require(Set(listed.map(\.epoch.value)).count, is: 3, "their epochs")
      await second.close()
      await store.close()
    },
    StoreContract("several server instances can set up one database at the same time") { under in
      let stores = try await withThrowingTaskGroup(of: (any SyncStore).self) { group in
        for _ in 0..<(under.isShared ? 4 : 1) { group.addTask { try await under.open(.standard) } }
        return try await group.reduce(into: []) { $0.append($1) }
      }
      for store in stores {
        try await store.check()
        await store.close()
      }
    },
    StoreContract("a space is found by its exact name only, and keeps its epoch") { under in
      var epoch: Epoch?
      try await under.withSpace { space in
        epoch = space.space.epoch
        try require(space.space.head, is: 0, "the head of a new space")
        let other = try await space.store.space(named: .name("Contract"))
        try require(other == nil, "a name in another case is found")
      }
      try await under.withSpace { space in
        try require(space.space.epoch, is: try unwrap(epoch, "no epoch"), "the epoch")
      }
    },
    StoreContract("an open store reports that it is ready, and a closed one that it is closed") {
      under in
      let store = try await under.open(.standard)
      try await store.check()
      await store.close()
      let isReady = (try? await store.check()) != nil
      try require(!isReady, "a closed store is ready")
    },
    StoreContract("an operation on an unknown space fails, and nothing is stored") { under in
      let store = try await under.open(.standard)
      var author = Author(1)
      let packet = IncomingPacket(author.packet(inserting: ["a"]), byteCount: 1)
      do {
        _ = try await store.ingest([packet], into: 4_711, now: SpaceUnderTest.now)
      } catch StoreError.failed {
        await store.close()
        return
      }
      throw ContractViolation(description: "a packet was taken into no space")
    },
  ]
}
