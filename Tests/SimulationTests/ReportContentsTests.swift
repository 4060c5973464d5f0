import FerrySimulation
import FerryTestSupport
import Testing

/// The explanations of a run on the report page, in a real browser.
@Suite("The explanations of the report page", .serialized, .hangLimit)
struct ReportContentsTests {
  private let page = ReportPage.html(ReportSample.content())

  @Test(
    "the page starts with its timeline, on a laptop and on a phone",
    arguments: [(HeadlessBrowser.Window.laptop, 0.3), (.phone, 0.45)], [true, false])
  func timelineFirst(_ screen: (window: HeadlessBrowser.Window, share: Double), _ fails: Bool)
    async throws
  {
    struct Answer: Decodable {
      let width, height, pageWidth, lanes, seen: Int
      let top: Double
      let isOpen: Bool
    }
    var content = ReportSample.crowd(devices: 20, events: 3_000)
    if fails { content.violations = [ReportSample.violation] }
    let answer = try await ReportBrowser().ask(
      Answer.self, ReportPage.html(content), window: screen.window,
      probe: """
        await settled();
        const names = [...document.querySelectorAll("#lanes li")];
        return { width: innerWidth, height: innerHeight, lanes: names.length,
          pageWidth: document.documentElement.scrollWidth,
          top: chart.getBoundingClientRect().top,
          seen: names.filter((name) => name.getBoundingClientRect().bottom < innerHeight).length,
          isOpen: document.getElementById("filters").open };
        """)
    #expect(answer.width == screen.window.width)
    #expect(answer.pageWidth <= answer.width, "nothing sticks out to the right")
    #expect(answer.lanes == 21)
    #expect(answer.top < Double(answer.height) * screen.share)
    #expect(answer.seen >= 15)
    #expect(!answer.isOpen)
  }

  @Test("the search finds kinds, devices, phases and values, not only texts of events")
  func search() async throws {
    let expected: [String: [String]] = [
      "conflict": ["conflict"], "crashed": ["crashed"], "Torn Write": ["tornWrite"],
      "tornWrite": ["tornWrite"], "buy oat": ["conflict"], "tasks/7.DONE": ["conflict"],
      "faults": ["phase"], "liveness": ["phase"], "device-1 restarted": ["restarted"],
      "#12": ["sent", "dropped"], " page 3 ": ["tornWrite"], "nothing like this": [],
    ]
    let words = expected.keys.sorted()
    let list = "[" + words.map { "\"\($0)\"" }.joined(separator: ",") + "]"
    let found = try await ReportBrowser().ask(
      [[String]].self, page,
      probe: """
        const found = [];
        for (const words of \(list)) {
          const find = document.getElementById("find");
          find.value = words;
          find.dispatchEvent(new Event("input"));
          await settled();
          found.push(rows());
        }
        return found;
        """)
    for (words, kinds) in zip(words, found) { #expect(kinds == expected[words], "\(words)") }
  }

  @Test("the page names the values that lost, the winning ones, and the devices that wrote them")
  func lostValues() async throws {
    struct Answer: Decodable { let rows, inTable, story: [String], isHidden: Bool }
    let browser = try ReportBrowser()
    let answer = try await browser.ask(
      Answer.self, page,
      probe: """
        const cells = (row) => [...row.cells].map((cell) => cell.textContent).join(" | ");
        document.querySelector("#lost-rows button").click();
        await settled();
        return { isHidden: document.getElementById("lost").hidden,
          rows: [...document.querySelectorAll("#lost-rows tr")].map(cells),
          inTable: [...document.querySelectorAll("#rows .lost-list li")].map((i) => i.textContent),
          story: [...document.querySelectorAll("#story .lost-list li")].map(
            (item) => item.textContent) };
        """)
    #expect(!answer.isHidden)
    #expect(
      answer.rows == [
        "0:02.200 | device-2 | tasks/7.title | \"Buy milk\"device-2 | \"Buy oat milk\"device-1",
        "0:02.200 | device-2 | tasks/7.done | 1device-2 | the deletedevice-1its user is asked",
      ])
    #expect(
      answer.inTable == [
        "tasks/7.title: \"Buy milk\" by device-2 lost to \"Buy oat milk\" by device-1",
        "tasks/7.done: 1 by device-2 lost to the delete by device-1; its user is asked",
      ])
    #expect(answer.story == answer.inTable)
    let crowd = ReportPage.html(ReportSample.crowd(devices: 3, events: 30))
    let isHidden = try await browser.ask(
      Bool.self, crowd, probe: "return document.getElementById('lost').hidden")
    #expect(isHidden, "a run without conflicts has no such table")
  }

  @Test("a value of 16 KiB is cut, and thousands of lost values are counted")
  func largeLosses() async throws {
    var content = ReportSample.content(violations: [])
    let side = LostValue.Side(value: String(repeating: "é", count: 16_384), author: "device-1")
    content.events[16].lost = Array(
      repeating: LostValue(place: "tasks/7.title", lost: side, won: side), count: 5_000)
    let texts = try await ReportBrowser().ask(
      [String].self, ReportPage.html(content),
      probe: """
        return [document.getElementById("lost-status").textContent,
          document.querySelector("#lost-rows code").textContent.slice(-22),
          document.querySelector("#rows .lost-list li:last-child").textContent];
        """)
    #expect(
      texts == [
        "The first 200 of 5,000 in the shown stretch.", "é… (16,384 characters)",
        "and 4997 more",
      ])
  }

  @Test("the phases are explained in words, and a click shows one of them alone")
  func phases() async throws {
    struct Answer: Decodable { let titles, times: [String], last: String, rows: [String] }
    var content = ReportSample.content(violations: [])
    content.events.append(
      TraceEvent(at: 3_000_001, actor: "world", kind: .phase, detail: "judgement"))
    let probe = """
      const texts = (selector) =>
        [...document.querySelectorAll(selector)].map((found) => found.textContent);
      const last = texts("#phases li").at(-1);
      document.querySelector('#phases [data-phase="1"]').click();
      await settled();
      return { titles: texts("#phases button"), times: texts("#phases .times"), last,
        rows: rows() };
      """
    let browser = try ReportBrowser()
    let whole = try await browser.ask(Answer.self, ReportPage.html(content), probe: probe)
    #expect(whole.titles == ["Faults", "Drain", "Verdict"])
    #expect(
      whole.times == ["0:00.000 to 0:02.000", "0:02.000 to 0:03.000", "at 0:03.000"])
    #expect(whole.last.contains("Oracles compare"))
    #expect(whole.rows == ["phase", "released", "conflict", "synced", "phase"])
    let failed = try await browser.ask(Answer.self, page, probe: probe)
    #expect(failed.titles == ["Faults", "Drain"])
    #expect(failed.last == "The first violation ends a run, so no later phase began.")
  }
}
