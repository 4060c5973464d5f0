import Ferry

struct Cart: Codable, Sendable {
  var customer: String
  var total: Int
}

struct Discount: Codable, Sendable {
  var percent: Int
}

/// The example of Documentation/patches.md, line by line; `PatchPairTests` compares the lines.
func patchExample(
  replica: Replica, key: PatchKey, ledger: String, host: PatchHost?, limits: PatchLimits
) async throws -> (Int, [BehaviourStatus]) {
  let behaviours = try await Behaviours.open(
    app: "org.example.shop", version: "2.3.0", trusting: [key], ledger: ledger,
    host: host, limits: limits)

  let orders = PatchService("orders.count") { (customer: String) in
    try await replica.read { database in
      try database.query("SELECT id FROM orders WHERE customer = ?", [.text(customer)]).count
    }
  }
  let discount = await behaviours.register("cart.discount", granting: [orders]) { (cart: Cart) in
    Discount(percent: cart.total > 10_000 ? 5 : 0)
  }

  let missions = try await replica.missionManager()
  try await missions.download("patches")
  try await missions.waitUntilIdle("patches")
  let report = try await behaviours.load(folder: try await missions.path("patches"))
  for patch in report.refused { print("\(patch.source): \(patch.reason)") }

  let percent = try await discount(Cart(customer: "ada", total: 5_000)).percent
  print("\(percent) %")
  return (percent, await behaviours.status)
}
