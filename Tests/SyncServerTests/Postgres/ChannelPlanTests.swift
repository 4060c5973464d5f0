import Testing

@testable import FerryPostgres

@Suite("The channels of a listener")
struct ChannelPlanTests {
  private typealias Changes = ChannelPlan.Changes

  /// Runs the missing statements.
  private func run(_ plan: inout ChannelPlan) -> Changes {
    let changes = plan.changes
    plan.made(changes)
    return changes
  }

  @Test("a connection listens to the wanted channels, and then to those that are added")
  func begins() {
    var plan = ChannelPlan(["b", "a"])
    #expect(run(&plan) == Changes(begun: ["a", "b"]))
    #expect(plan.changes.isEmpty)
    #expect(plan.listen(to: "c") == true)
    #expect(plan.listen(to: "c") == false, "the thread need not look again")
    #expect(plan.listen(to: "a") == false)
    #expect(run(&plan) == Changes(begun: ["c"]))
    #expect(plan.inForce == ["a", "b", "c"])
  }

  @Test("a channel that ends and begins again between two looks costs no statement")
  func unchanged() {
    var plan = ChannelPlan(["a"])
    _ = run(&plan)
    #expect(plan.unlisten(from: "a") == true)
    #expect(plan.listen(to: "a") == true)
    _ = plan.listen(to: "b")
    _ = plan.unlisten(from: "b")
    #expect(plan.unlisten(from: "b") == false)
    #expect(plan.changes.isEmpty)
  }

  @Test("a channel that is wanted again while it ends is begun again")
  func crossing() {
    var plan = ChannelPlan(["a"])
    _ = run(&plan)
    _ = plan.unlisten(from: "a")
    let changes = plan.changes
    _ = plan.listen(to: "a")
    plan.made(changes)
    #expect(run(&plan) == Changes(begun: ["a"]))
  }

  @Test("after a lost connection all wanted channels are begun again, and ended ones are not")
  func reconnects() {
    var plan = ChannelPlan(["a", "b"])
    _ = run(&plan)
    plan.disconnected()
    _ = plan.unlisten(from: "a")
    _ = plan.listen(to: "c")
    #expect(run(&plan) == Changes(begun: ["b", "c"]))
  }
}
