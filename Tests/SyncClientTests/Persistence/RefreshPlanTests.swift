import FerrySQLite
import FerryTestSupport
import Testing

@testable import FerryPersistence

/// When a live query runs again: changes in, runs out.
@Suite("The plan of a live query", .hangLimit)
struct RefreshPlanTests {
  /// Returns a plan that has run once, and read these tables.
  private func plan(reading tables: String...) -> RefreshPlan {
    var plan = RefreshPlan()
    plan.begin()
    let isAgain = plan.end(region(tables))
    #expect(!isAgain)
    return plan
  }

  private func region(_ tables: [String]) -> ReadRegion {
    var region = ReadRegion()
    region.add(tables)
    return region
  }

  private static let shape = TableShape([
    TableShape.Column(name: "k", affinity: .text, isBinary: true, hasDefault: false)
  ])

  /// Returns a change of the rows of table a with these keys.
  private func rows(_ keys: String...) -> ChangedTables {
    let images = keys.map { SQLiteRowImage(number: 1, values: [.text(Array($0.utf8))]) }
    return .some(["a": .rows(images, Self.shape)])
  }

  @Test(
    "only a change of a table that was read, or an unknown change, begins a run",
    arguments: [
      (ChangedTables.some(["a": .all]), true), (.some(["b": .all, "c": .all]), false),
      (.some(["b": .all, "a": .all]), true), (.unknown, true),
    ])
  func concerned(_ changed: ChangedTables, _ runs: Bool) {
    var plan = plan(reading: "a")
    let isBegun = plan.change(changed)
    #expect(isBegun == runs)
  }

  @Test("changes during a run begin no second one, and count as one after it")
  func duringARun() {
    var plan = plan(reading: "a")
    plan.begin()
    for _ in 0..<1_000 {
      let runs = plan.change(.some(["a": .all]))
      #expect(!runs)
    }
    let isAgain = plan.end(region(["a"]))
    #expect(isAgain)
    plan.begin()
    let isThird = plan.end(region(["a"]))
    #expect(!isThird)
  }

  @Test("a change during a run is judged by the tables that this run reads")
  func otherTables() {
    var plan = plan(reading: "a")
    plan.begin()
    _ = plan.change(.some(["b": .all]))
    let isAgain = plan.end(region(["a", "b"]))
    #expect(isAgain)
    plan.begin()
    _ = plan.change(.some(["c": .all]))
    let isThird = plan.end(region(["a", "b"]))
    #expect(!isThird)
    let isBegun = plan.change(.some(["b": .all]))
    #expect(isBegun)
  }

  @Test("a change during the first run is not lost")
  func firstRun() {
    var plan = RefreshPlan()
    plan.begin()
    let isBegun = plan.change(.some(["a": .all]))
    #expect(!isBegun)
    let isAgain = plan.end(region(["a"]))
    #expect(isAgain)
  }

  @Test("changes add up, and an unknown one stays unknown")
  func sum() {
    var changed = ChangedTables.some(["a": .all])
    changed.add(.some(["b": .all]))
    #expect(changed == .some(["a": .all, "b": .all]))
    changed.add(.unknown)
    changed.add(.some(["c": .all]))
    #expect(changed == .unknown)
  }

  @Test("a query of some rows is run again when one of them was there, or is there now")
  func someRows() {
    var plan = RefreshPlan()
    let isNeededFirst = plan.needsRows(of: "a")
    #expect(isNeededFirst)
    plan.begin()
    var region = ReadRegion()
    region.add("a", where: Field("k") == "x")
    region.add("a", where: Field("k") == "y")
    region.add(["b"])
    let isAgain = plan.end(region)
    #expect(!isAgain)
    #expect(plan.needsRows(of: "a") && !plan.needsRows(of: "b") && !plan.needsRows(of: "c"))
    let runs = [rows("z"), rows("z", "y"), rows("x", "z"), .some(["a": .all]), .unknown]
      .map { plan.change($0) }
    #expect(runs == [false, true, true, true, true])
    plan.begin()
    _ = plan.change(rows("z"))
    let isSpared = plan.end(region)
    #expect(!isSpared)
    plan.begin()
    _ = plan.change(rows("z"))
    _ = plan.change(rows("x"))
    let isMissed = plan.end(region)
    #expect(isMissed)
  }

  @Test("rows add up until there are too many; a table that is read as a whole stays so")
  func manyRows() {
    var changed = rows("x")
    changed.add(rows("y"))
    #expect(changed == rows("x", "y"))
    for _ in 0..<SQLiteChanges.imagesMax { changed.add(rows("z")) }
    #expect(changed == .some(["a": .all]))
    var region = ReadRegion()
    region.add(["a"])
    region.add("a", where: Field("k") == "x")
    #expect(!region.hasConditions(on: "a"))
    var long = ReadRegion()
    for number in 0..<ReadRegion.valuesMax { long.add("a", where: Field("k") == number) }
    #expect(long.hasConditions(on: "a"))
    // Too many comparisons: the run costs less.
    #expect(rows("x").concern(long) == false)
    var more = rows("x")
    for _ in 0..<30 { more.add(rows("x")) }
    #expect(more.concern(long))
    long.add("a", where: Field("k") == "x")
    #expect(!long.hasConditions(on: "a"))
  }
}
