import Testing

@testable import musterctl

@Suite struct TableTests {
  private let events = Table(
    [.init("ID"), .init("WHEN"), .init("TITLE", .flexible), .init("PLACE", .optional)],
    rows: [
      [.init("00000001"), .init("Fri 1 May 19:00"), .init("Pasta night", .bold), .init("Ana's kitchen")],
      [.init("00000008"), .init("Sun 3 May 09:30"), .init("喫茶店めぐり"), .init("")],
      [.init("00000002"), .init("Mon 4 May 18:00"), .init("🎉 An evening of games at home"), .init("Rua da Rosa")],
    ])

  @Test func `columns line up in any script`() {
    #expect(
      events.lines(within: nil, isColored: false) == [
        "ID        WHEN             TITLE                           PLACE",
        "00000001  Fri 1 May 19:00  Pasta night                     Ana's kitchen",
        "00000008  Sun 3 May 09:30  喫茶店めぐり",
        "00000002  Mon 4 May 18:00  🎉 An evening of games at home  Rua da Rosa",
      ])
  }

  @Test func `a narrow terminal shortens titles, then leaves out optional columns`() {
    #expect(
      events.lines(within: 64, isColored: false) == [
        "ID        WHEN             TITLE                   PLACE",
        "00000001  Fri 1 May 19:00  Pasta night             Ana's kitchen",
        "00000008  Sun 3 May 09:30  喫茶店めぐり",
        "00000002  Mon 4 May 18:00  🎉 An evening of game…  Rua da Rosa",
      ])
    // A column that is left out gives its place to the others.
    #expect(
      events.lines(within: 60, isColored: false) == [
        "ID        WHEN             TITLE",
        "00000001  Fri 1 May 19:00  Pasta night",
        "00000008  Sun 3 May 09:30  喫茶店めぐり",
        "00000002  Mon 4 May 18:00  🎉 An evening of games at home",
      ])
    #expect(events.lines(within: 40, isColored: false)[3] == "00000002  Mon 4 May 18:00  🎉 An evenin…")
  }

  private let links = Table(
    [.init("ID"), .init("RULES", .flexible), .init("JOINED"), .init("LINK", .ownLine)],
    rows: [
      [.init("dec3fc"), .init("answer, e-mail required"), .init("0 of 3"), .init("https://muster.example/e/AaIMuT")]
    ])

  @Test func `a cell that is of no use in part goes below its row, before anything is shortened`() {
    #expect(
      links.lines(within: 72, isColored: false) == [
        "ID      RULES                    JOINED  LINK",
        "dec3fc  answer, e-mail required  0 of 3  https://muster.example/e/AaIMuT",
      ])
    #expect(
      links.lines(within: 71, isColored: false) == [
        "ID      RULES                    JOINED",
        "dec3fc  answer, e-mail required  0 of 3",
        "  https://muster.example/e/AaIMuT",
      ])
    #expect(
      links.lines(within: 33, isColored: false).dropFirst() == [
        "dec3fc  answer, e-mail r…  0 of 3", "  https://muster.example/e/AaIMuT",
      ])
  }

  @Test(arguments: 1...90) func `no line is wider than the terminal`(limit: Int) {
    for line in events.lines(within: limit, isColored: false) + links.lines(within: limit, isColored: false) {
      #expect(DisplayWidth.of(line) <= limit)
    }
  }

  @Test func `colors change no width and no text`() {
    let colored = events.lines(within: 60, isColored: true)
    let plain = events.lines(within: 60, isColored: false)
    #expect(colored[1].contains("\u{1B}[1mPasta night\u{1B}[0m"))
    #expect(colored.map { $0.replacing(/\u{1B}\[[0-9]+m/, with: "") } == plain)
  }

  @Test func `texts of users cannot leave their cell`() {
    let table = Table([.init("NAME"), .init("X")], rows: [[.init("a\u{1B}[2Jb\n"), .init("y")]])
    #expect(table.lines(within: nil, isColored: false)[1] == #"a\u{1B}[2Jb\n  y"#)
  }
}
