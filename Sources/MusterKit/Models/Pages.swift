/// A list, page by page. Asks for a page when it is wanted, and not before.
///
///     for try await page in client.events.guestPages(of: event) { show(page.items) }
///     for try await guest in client.events.guestPages(of: event).items { print(guest.name) }
///
/// Throws what the list's call throws, and `CancellationError` if the task is cancelled. After an error, a further call
/// of the iterator's `next()` asks for the same page again. Each iteration begins with the first page.
///
/// A list that changes meanwhile may show an item twice, or leave one out: then ``Page/timestamp`` is nil on the pages
/// after the change. The store keeps collections without such gaps: see ``MusterStore``.
public struct Pages<Item: Sendable>: AsyncSequence, Sendable {
  public typealias Element = Page<Item>
  /// Makes the call for one page.
  ///
  /// - Parameter cursor: nil for the first page.
  public typealias Call = @Sendable (_ cursor: String?) async throws -> Page<Item>

  private let call: Call

  /// The pages of any call that takes a cursor.
  public init(_ call: @escaping Call) { self.call = call }

  public func makeAsyncIterator() -> Iterator { Iterator(call: call) }

  /// Reads the pages, one after the other.
  public struct Iterator: AsyncIteratorProtocol {
    let call: Call
    private var cursor: String?
    private var isAtEnd = false

    init(call: @escaping Call) { self.call = call }

    public mutating func next() async throws -> Page<Item>? {
      guard !isAtEnd else { return nil }
      try Task.checkCancellation()
      let page = try await call(cursor)
      cursor = page.nextCursor
      isAtEnd = page.nextCursor == nil
      return page
    }
  }
}

extension Pages {
  /// The items of all pages, one by one. Asks for the next page when those of the page before are used up.
  public var items: Items { Items(pages: self) }

  /// The items of a list.
  public struct Items: AsyncSequence, Sendable {
    public typealias Element = Item

    let pages: Pages

    public func makeAsyncIterator() -> Iterator { Iterator(pages: pages.makeAsyncIterator()) }

    /// Reads the items, one after the other.
    public struct Iterator: AsyncIteratorProtocol {
      var pages: Pages.Iterator
      private var items: ArraySlice<Item> = []

      init(pages: Pages.Iterator) { self.pages = pages }

      public mutating func next() async throws -> Item? {
        while items.isEmpty {
          guard let page = try await pages.next() else { return nil }
          items = page.items[...]
        }
        return items.removeFirst()
      }
    }
  }
}
