import FerrySimulation
import FerryTestSupport
import Foundation
import Testing

@Suite("The report page in a browser", .serialized, .hangLimit)
struct ReportBrowserTests {
  private let page = ReportPage.html(ReportSample.content())

  @Test("the page shows verdict, figures, lanes and every event, without an error of its script")
  func everything() async throws {
    let browser = try ReportBrowser()
    let document = try await browser.document(
      page,
      probe: """
        const texts = (selector) =>
          [...document.querySelectorAll(selector)].map((found) => found.textContent);
        return { verdict: texts("#verdict"), lanes: texts("#lanes li"),
          figures: texts("#figures dt"), kinds: rows(),
          texts: [...document.querySelectorAll("#rows td:last-child")].map(
            (cell) => cell.firstChild?.textContent ?? ""), legend: texts("#legend span") };
        """)
    #expect(document.contains("<html lang=\"en\" data-state=\"ready\""))
    #expect(document.contains("id=\"script-error\" role=\"alert\" hidden=\"\""))
    #expect(document.contains("19 of 19 events, 3 messages from 0:00.000 to 0:03.000<"))
    let shown = try browser.answer([String: [String]].self, in: document)
    #expect(shown["verdict"] == ["Failed"])
    #expect(shown["lanes"] == ["device-1", "device-2", "server"])
    #expect(shown["figures"] == ["operations", "packets"])
    #expect(shown["kinds"] == ReportSample.events.map(\.kind.rawValue))
    let inWords = ["safety": "Faults (safety)", "liveness": "Drain (liveness)"]
    #expect(shown["texts"] == ReportSample.events.map { inWords[$0.detail] ?? $0.detail })
    #expect(shown["legend"] == ["push", "pull", "thin: an answer", "dropped"])
  }

  @Test("the address filters by kind, actor, text and time")
  func fragments() async throws {
    let browser = try ReportBrowser()
    let expected = [
      "#kinds=crashed,restarted": ["crashed", "restarted"],
      "#actors=device-2&kinds=sent,dropped,wrote": ["sent", "dropped"],
      "#find=TASKS%207": ["wrote"],
      "#from=950000&to=1200000": ["crashed", "tornWrite"],
    ]
    for (fragment, kinds) in expected.sorted(by: { $0.key < $1.key }) {
      let rows = try await browser.ask(
        [String].self, page, fragment: fragment, probe: "return rows()")
      #expect(rows == kinds, "\(fragment)")
    }
  }

  @Test("checkboxes and the search field filter, and the address follows")
  func controls() async throws {
    struct Answer: Decodable { let unchecked, found: [String], lanes: Int, fragment: String }
    let answer = try await ReportBrowser().ask(
      Answer.self, page,
      probe: """
        document.querySelector('[data-action="no-kinds"]').click();
        await settled();
        document.querySelector('#kinds [data-kind="crashed"] input').click();
        await settled();
        const unchecked = rows();
        document.querySelector('[data-action="all-kinds"]').click();
        await settled();
        document.querySelector('#actors [data-actor="device-2"] input').click();
        const find = document.getElementById("find");
        find.value = "page";
        find.dispatchEvent(new Event("input"));
        await settled();
        await new Promise((done) => setTimeout(done, 1000));
        return { unchecked, found: rows(), lanes: document.querySelectorAll("#lanes li").length,
          fragment: location.hash };
        """)
    #expect(answer.unchecked == ["crashed"])
    #expect(answer.found == ["tornWrite"])
    #expect(answer.lanes == 2)
    #expect(answer.fragment == "#actors=device-1,server,world&find=page")
  }

  @Test("keys zoom, move, step from event to event and find the violation")
  func keyboard() async throws {
    struct Answer: Decodable { let zoomed, moved, whole: Int, stepped, story: String }
    let answer = try await ReportBrowser().ask(
      Answer.self, page,
      probe: """
        const count = async () => { await settled(); return rows().length; };
        for (const key of ["+", "+", "+"]) press(key);
        const zoomed = await count();
        for (let i = 0; i < 80; i++) press("ArrowLeft");
        const moved = await count();
        press("0");
        const whole = await count();
        for (const key of ["n", "n", "n", "p"]) press(key);
        await settled();
        const stepped = document.querySelector("#rows [aria-current]").dataset.kind;
        press("v");
        await settled();
        return { zoomed, moved, whole, stepped,
          story: document.querySelector("#story h3").textContent };
        """)
    #expect(answer.zoomed == 1)
    #expect(answer.moved == 6)
    #expect(answer.whole == 19)
    #expect(answer.stepped == "wrote")
    #expect(answer.story == "0:02.500 device-2 violation: \(ReportSample.violation)")
  }

  @Test("a click on a message shows its whole way, and its answer's")
  func clicks() async throws {
    struct Answer: Decodable { let tip: String, story: [String] }
    let answer = try await ReportBrowser().ask(
      Answer.self, page,
      probe: """
        const push = drawnLegs.find(({ leg }) => detailOf(leg.start) === "push 1 operation");
        const box = chart.getBoundingClientRect();
        const [x, y] = [(push.x1 + push.x2) / 2, (push.y1 + push.y2) / 2];
        const point = (type) => chart.dispatchEvent(new PointerEvent(type,
          { clientX: box.left + x, clientY: box.top + y, button: 0, pointerId: 1 }));
        chart.setPointerCapture = () => {};
        point("pointermove");
        const tip = document.getElementById("tip").textContent;
        point("pointerdown");
        point("pointerup");
        await settled();
        return { tip, story: [...document.querySelectorAll("#story li")].map(
          (item) => item.textContent) };
        """)
    #expect(answer.tip.contains("device-1 sent → server #11: push 1 operation"))
    #expect(
      answer.story == [
        "0:00.200 device-1 sent → server #11: push 1 operation",
        "0:00.300 server delivered ← device-1 #11",
        "0:00.310 server buffered → device-1 #11: waits for its predecessor",
        "0:00.320 server sent → device-1 #11: 200 buffered",
        "0:00.500 device-1 delivered ← server #11", "0:02.100 server released → device-1 #11",
      ])
  }

  @Test("the chart draws lanes, interrupts them while a process is down, and marks violations")
  func pixels() async throws {
    struct Answer: Decodable { let up, down, cut, free, violation: [Int], colours: Int }
    let answer = try await ReportBrowser().ask(
      Answer.self, page, fragment: "#kinds=crashed,restarted,partitioned,healed,violation",
      probe: """
        const pen = chart.getContext("2d");
        const ratio = devicePixelRatio;
        const pixel = (time, y) => [...pen.getImageData(
          Math.round(xOf(time) * ratio), Math.round(y * ratio), 1, 1).data].slice(0, 3);
        const [one, two] = [0, 1].map((actor) => yOf(actor));
        const all = pen.getImageData(0, 0, chart.width, chart.height).data;
        const colours = new Set();
        for (let i = 0; i < all.length; i += 4) {
          colours.add((all[i] << 16) | (all[i + 1] << 8) | all[i + 2]);
        }
        return { up: pixel(5e5, one - 0.5), down: pixel(14e5, one - laneHeight * 0.45),
          cut: pixel(12e5, two - laneHeight * 0.3), free: pixel(5e5, two - laneHeight * 0.3),
          violation: pixel(25e5, 40), colours: colours.size };
        """)
    #expect(answer.colours > 30)
    #expect(answer.up != answer.down)
    #expect(answer.cut != answer.free)
    #expect(answer.violation[0] > 150 && answer.violation[1] < 80)
  }

  @Test("texts are shown unchanged, and none of them runs")
  func escapes() async throws {
    var content = ReportSample.content()
    content.events = ReportPageTests.hostileTexts.map {
      var event = TraceEvent(at: 5, actor: "device-1", kind: .conflict, detail: $0)
      let side = LostValue.Side(value: $0, author: $0)
      event.lost = [LostValue(place: $0, lost: side, won: side)]
      return event
    }
    content.violations = ReportPageTests.hostileTexts
    struct Answer: Decodable { let title, state: String, texts, lost: [String], violations: Int }
    let answer = try await ReportBrowser().ask(
      Answer.self, ReportPage.html(content),
      probe: """
        return { title: document.title, state: document.documentElement.dataset.state,
          texts: [...document.querySelectorAll("#rows td:last-child")].map(
            (cell) => cell.firstChild.textContent),
          lost: [...document.querySelectorAll("#lost-rows td:last-child code")].map(
            (code) => code.textContent),
          violations: document.querySelectorAll("#violations li").length };
        """)
    #expect(answer.title == "Seed 42 failed · ferry-sim")
    #expect(answer.state == "ready")
    // Compared by bytes: in Swift, strings are equal if they only look the same.
    let expected = ReportPageTests.hostileTexts.map { Array($0.utf8) }
    #expect(answer.texts.map { Array($0.utf8) } == expected)
    #expect(answer.lost.map { Array($0.utf8) } == expected)
    #expect(answer.violations == ReportPageTests.hostileTexts.count)
  }

  @Test("months without events take little room")
  func quietMonths() async throws {
    var content = ReportSample.content()
    for place in content.events.indices where content.events[place].at > 1_600_000 {
      content.events[place].at += 90 * 86_400_000_000
    }
    struct Answer: Decodable { let gaps: Int, isShortened: Bool, share: Double, status: String }
    let answer = try await ReportBrowser().ask(
      Answer.self, ReportPage.html(content),
      probe: """
        return { gaps: scale.gaps.length, isShortened: document.getElementById("squeeze").checked,
          share: (scale.gaps[0].to - scale.gaps[0].from) / scale.length,
          status: document.getElementById("window-status").textContent };
        """)
    #expect(answer.gaps == 1)
    #expect(answer.isShortened)
    #expect(answer.share < 0.8)
    #expect(answer.status.hasSuffix("to 90 d 0:00:03.000"))
  }

  @Test("the page shows an error of the script")
  func brokenScript() async throws {
    let broken = String(decoding: page, as: UTF8.self)
      .replacingOccurrences(of: "{\"actors\":", with: "{\"actors\" ")
    let document = try await ReportBrowser().document(Array(broken.utf8))
    #expect(document.contains("data-state=\"broken\""))
    #expect(document.contains("role=\"alert\">The timeline is broken: "))
  }

  @Test("100,000 events can be opened, and so can a run without events")
  func extremes() async throws {
    let browser = try ReportBrowser()
    let crowd = try await browser.document(
      ReportPage.html(ReportSample.crowd(devices: 20, events: 100_000)))
    #expect(crowd.contains("data-state=\"ready\""))
    #expect(crowd.contains("100,000 of 100,000 events, 33,333 messages"))
    let nothing = ReportContent(
      seed: 1, replayCommand: "ferry-sim replay 1", options: [], actors: [], events: [],
      violations: [], figures: [], traceHash: "")
    let empty = try await browser.document(ReportPage.html(nothing))
    #expect(empty.contains("data-state=\"ready\""))
    #expect(empty.contains("0 of 0 events"))
  }

  @Test("a picture of the page is not empty, in the light and in the dark")
  func pictures() async throws {
    let browser = try ReportBrowser()
    let blank = try await browser.picture(Array("<!DOCTYPE html><title>blank</title>".utf8))
    let light = try await browser.picture(page)
    let dark = try await browser.picture(page, theme: .dark)
    #expect(light.starts(with: [0x89, 0x50, 0x4E, 0x47]))
    #expect(light.count > blank.count * 4)
    #expect(dark.count > blank.count * 4)
    #expect(light != dark)
  }
}
