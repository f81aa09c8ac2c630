% SPDX-License-Identifier: BSD-3-Clause
% The Savina programs as processes of Erlang: `erl -noshell -run savina main PROGRAM ROUNDS EXPECTED NAME=NUMBER...`.
% Prints the seconds of each round after a first one that does not count, and with `trips=1` the microseconds of each message and its
% answer. Ends with status 1 if a result is not the expected one, or does not come.
-module(savina).
-export([main/1]).

-define(LONGEST_WAIT, 60000).
-define(KEYS, 65536).

main([Program, Rounds, Expected | Parameters]) ->
  P = maps:from_list([parameter(Each) || Each <- Parameters]),
  [round(list_to_atom(Program), P, list_to_integer(Expected), N) || N <- lists:seq(0, list_to_integer(Rounds))],
  halt(0).

parameter(Text) ->
  [Name, Number] = string:split(Text, "="),
  {list_to_atom(Name), list_to_integer(Number)}.

round(Program, P, Expected, Number) ->
  erlang:garbage_collect(),
  Main = self(),
  Begin = erlang:monotonic_time(nanosecond),
  spawn_link(fun() -> Main ! {result, program(Program, P)} end),
  {Value, Trips} = receive {result, {V, T}} -> {V, T}; {result, V} -> {V, []} after ?LONGEST_WAIT -> {none, []} end,
  Seconds = (erlang:monotonic_time(nanosecond) - Begin) / 1.0e9,
  case Value of
    Expected when Number > 0 -> io:format("~.9f~n", [Seconds]), [io:format("trip ~.3f~n", [Each / 1000]) || Each <- Trips];
    Expected -> ok;
    _ -> io:format("expected the result ~p, got ~p~n", [Expected, Value]), halt(1)
  end.

% Random numbers of Park and Miller.
next(X) -> X * 16807 rem 2147483647.

work(Seed, Steps) -> work(Seed + 1, Steps, 0).
work(_, 0, Sum) -> Sum;
work(X, Steps, Sum) -> Y = next(X), work(Y, Steps - 1, Sum + Y rem 2).

times(0, _) -> ok;
times(N, Do) -> Do(), times(N - 1, Do).

spawns(N, Do) -> [spawn_link(fun() -> Do(I) end) || I <- lists:seq(0, N - 1)].

% The sum of what N messages with this tag bring.
sum_of(Tag, N) -> sum_of(Tag, N, 0).
sum_of(_, 0, Sum) -> Sum;
sum_of(Tag, N, Sum) -> receive {Tag, Value} -> sum_of(Tag, N - 1, Sum + Value) end.

now_if(#{trips := _}) -> erlang:monotonic_time(nanosecond);
now_if(_) -> 0.

trip(#{trips := _}, Begin, Trips) -> [erlang:monotonic_time(nanosecond) - Begin | Trips];
trip(_, _, Trips) -> Trips.

program(ping_pong, P = #{messages := N}) ->
  To = spawn_link(fun ponger/0),
  Answers = ping(To, N, P, 0, []),
  To ! stop,
  Answers;

program(counting, #{messages := N}) ->
  Counter = spawn_link(fun() -> counter(0) end),
  times(N, fun() -> Counter ! increment end),
  Counter ! {retrieve, self()},
  sum_of(total, 1);

program(fork_join_throughput, #{actors := A, messages := N}) ->
  Main = self(),
  All = spawns(A, fun(_) -> Main ! {sum, sum_of(job, N)} end),
  [Each ! {job, I} || I <- lists:seq(0, N - 1), Each <- All],
  sum_of(sum, A);

program(fork_join_create, #{actors := A}) ->
  Main = self(),
  [spawn_link(fun() -> receive {job, I} -> Main ! {answer, 2 * I} end end) ! {job, Number} || Number <- lists:seq(0, A - 1)],
  sum_of(answer, A);

program(thread_ring, #{actors := A, hops := Hops}) ->
  Main = self(),
  Ring = spawns(A, fun(I) -> receive {next, Next} -> member(I, Next, Main) end end),
  [Each ! {next, Next} || {Each, Next} <- lists:zip(Ring, tl(Ring) ++ [hd(Ring)])],
  hd(Ring) ! {token, Hops},
  sum_of(holder, 1);

program(big, P = #{actors := A, messages := N}) ->
  Main = self(),
  All = spawns(A, fun(I) -> receive {all, Each} -> ask(Each, I + 1, N, 0, P, Main, []) end end),
  Everybody = list_to_tuple(All),
  [Each ! {all, Everybody} || Each <- All],
  Found = [receive {finished, Answers, Trips} -> {Answers, Trips} end || _ <- All],
  [Each ! stop || Each <- All],
  {lists:sum([Answers || {Answers, _} <- Found]), lists:append([Trips || {_, Trips} <- Found])};

program(chameneos, #{actors := A, meetings := Meetings}) ->
  Mall = self(),
  spawns(A, fun(I) -> creature(Mall, I rem 3) end),
  mall(Meetings, none),
  times(A, fun() -> receive {meet, _, Who} -> Who ! stop end end),
  sum_of(over, A);

program(dictionary, P) -> collection(P, #{}, fun maps:is_key/2, fun(Key, All) -> All#{Key => Key} end, fun maps:size/1);
program(sorted_list, P) -> collection(P, [], fun find/2, fun insert/2, fun erlang:length/1);

program(philosophers, #{actors := A, rounds := Rounds}) ->
  Table = self(),
  spawns(A, fun(I) -> philosopher(Table, I, Rounds) end),
  arbitrator(A, A, #{}, 0);

program(bounded_buffer, #{buffer := Room, producers := P, consumers := C, items := Items, work := Steps}) ->
  Consumers = spawns(C, fun(_) -> consumer(Steps) end),
  Producers = spawns(P, fun(I) -> producer(I * Items, (I + 1) * Items, Steps) end),
  Sum = buffer(queue:from_list(Producers), queue:from_list(Consumers), queue:new(), 0, Room, P * Items, 0),
  [Each ! stop || Each <- Producers ++ Consumers],
  Sum;

program(barber, #{customers := N, room := Chairs, work := Steps}) ->
  Street = self(),
  Barber = spawn_link(fun() -> cutter(Steps) end),
  Room = spawn_link(fun() -> waiting_room(Barber, Chairs, queue:new(), true) end),
  Walked = lists:sum([begin
                        Walk = work(I, Steps),
                        Room ! {enter, spawn_link(fun() -> customer(Street) end), I},
                        Walk
                      end || I <- lists:seq(0, N - 1)]),
  Sum = street(Room, N, 0),
  Room ! stop,
  Sum - Walked;

program(bank, #{accounts := A, transactions := N}) ->
  Teller = self(),
  All = list_to_tuple(spawns(A, fun(I) -> account(Teller, I, 0) end)),
  transactions(N, 1, A, All),
  [receive transferred -> ok end || _ <- lists:seq(1, N)],
  [Each ! stop || Each <- tuple_to_list(All)],
  sum_of(balance, A);

program(trapezoidal, #{workers := W, pieces := Pieces}) ->
  Main = self(),
  Step = 4 / Pieces,
  Each = Pieces div W,
  spawns(W, fun(I) -> Main ! {area, area(1 + I * Each * Step, Step, 0, Each, 0.0)} end),
  erlang:round(10000 * sum_of(area, W));

program(queens, #{workers := W, size := Size, threshold := Threshold}) ->
  Master = self(),
  Workers = list_to_tuple(spawns(W, fun(_) -> queens_worker(Master, Size, Threshold) end)),
  element(1, Workers) ! {board, []},
  Count = queens_master(Workers, 0, 1, 0),
  [Each ! stop || Each <- tuple_to_list(Workers)],
  Count;

program(sieve, #{numbers := N, primes := Most}) ->
  Main = self(),
  First = spawn_link(fun() -> filter(Main, Most, [], 0, none) end),
  [First ! {candidate, I} || I <- lists:seq(2, N)],
  First ! {total, 0},
  sum_of(sum, 1).

% ping_pong

ponger() -> receive {ping, From} -> From ! pong, ponger(); stop -> ok end.

ping(_, N, _, N, Trips) -> {N, Trips};
ping(To, N, P, Answers, Trips) ->
  Begin = now_if(P),
  To ! {ping, self()},
  receive pong -> ping(To, N, P, Answers + 1, trip(P, Begin, Trips)) end.

% counting

counter(Count) ->
  receive
    increment -> counter(Count + 1);
    {retrieve, To} -> To ! {total, Count}
  end.

% thread_ring

member(I, Next, Main) ->
  receive
    {token, 0} -> Main ! {holder, I}, Next ! stop, member(I, Next, Main);
    {token, Left} -> Next ! {token, Left - 1}, member(I, Next, Main);
    stop -> Next ! stop
  end.

% big

ask(All, X, N, Answers, P, Sink, Trips) ->
  Random = next(X),
  Begin = now_if(P),
  element(1 + Random rem tuple_size(All), All) ! {ping, self()},
  answered(All, Random, N, Answers, P, Sink, Trips, Begin).

answered(All, X, N, Answers, P, Sink, Trips, Begin) ->
  receive
    {ping, From} -> From ! pong, answered(All, X, N, Answers, P, Sink, Trips, Begin);
    pong when Answers + 1 < N -> ask(All, X, N, Answers + 1, P, Sink, trip(P, Begin, Trips));
    pong -> Sink ! {finished, Answers + 1, trip(P, Begin, Trips)}, answered(All, X, N, Answers + 1, P, Sink, [], Begin);
    stop -> ok
  end.

% chameneos

complement(Same, Same) -> Same;
complement(One, Other) -> 3 - One - Other.

creature(Mall, Colour) -> Mall ! {meet, Colour, self()}, creature(Mall, Colour, 0).
creature(Mall, Colour, Meetings) ->
  receive
    {meet, Other, Who} ->
      New = complement(Colour, Other),
      Who ! {change, New},
      Mall ! {meet, New, self()},
      creature(Mall, New, Meetings + 1);
    {change, New} ->
      Mall ! {meet, New, self()},
      creature(Mall, New, Meetings + 1);
    stop -> Mall ! {over, Meetings}
  end.

mall(0, none) -> ok;
mall(Left, none) -> receive {meet, _, Who} -> mall(Left, Who) end;
mall(Left, First) -> receive Second = {meet, _, _} -> First ! Second, mall(Left - 1, none) end.

% dictionary, sorted_list

collection(#{workers := W, messages := N, writes := Writes}, Empty, Find, Insert, Size) ->
  Owner = self(),
  spawns(W, fun(I) -> worker(Owner, I + 1, N, Writes) end),
  owner(W, Empty, Find, Insert, Size).

owner(0, All, _, _, Size) -> Size(All);
owner(W, All, Find, Insert, Size) ->
  receive
    {read, Key, From} -> From ! {value, Find(Key, All)}, owner(W, All, Find, Insert, Size);
    {write, Key, From} -> From ! {value, Key}, owner(W, Insert(Key, All), Find, Insert, Size);
    finished -> owner(W - 1, All, Find, Insert, Size)
  end.

worker(Owner, _, 0, _) -> Owner ! finished;
worker(Owner, X, N, Writes) ->
  Kind = next(X),
  Key = next(Kind),
  Owner ! {if Kind rem 100 < Writes -> write; true -> read end, Key rem ?KEYS, self()},
  receive {value, _} -> worker(Owner, Key, N - 1, Writes) end.

find(Key, [Each | More]) when Each < Key -> find(Key, More);
find(Key, [Each | _]) -> Each =:= Key;
find(_, []) -> false.

insert(Key, [Each | More]) when Each < Key -> [Each | insert(Key, More)];
insert(Key, All = [Key | _]) -> All;
insert(Key, All) -> [Key | All].

% philosophers

philosopher(Table, _, 0) -> Table ! leaves;
philosopher(Table, I, Left) ->
  Table ! {hungry, I, self()},
  receive
    denied -> philosopher(Table, I, Left);
    eat -> Table ! {sated, I}, philosopher(Table, I, Left - 1)
  end.

arbitrator(_, 0, _, Meals) -> Meals;
arbitrator(A, Here, Taken, Meals) ->
  receive
    {hungry, I, Who} when is_map_key(I, Taken); is_map_key((I + 1) rem A, Taken) -> Who ! denied, arbitrator(A, Here, Taken, Meals);
    {hungry, I, Who} -> Who ! eat, arbitrator(A, Here, Taken#{I => true, (I + 1) rem A => true}, Meals + 1);
    {sated, I} -> arbitrator(A, Here, maps:without([I, (I + 1) rem A], Taken), Meals);
    leaves -> arbitrator(A, Here - 1, Taken, Meals)
  end.

% bounded_buffer

producer(Next, End, Steps) -> producer(Next, End, Steps, 0).
producer(Next, End, Steps, Worked) ->
  receive
    {produce, _} when Next =:= End -> producer(Next, End, Steps, Worked);
    {produce, Buffer} ->
      More = work(Next, Steps),
      Buffer ! {item, Next, self()},
      producer(Next + 1, End, Steps, Worked + More);
    stop -> ok
  end.

consumer(Steps) ->
  receive
    {item, I, Buffer} -> Buffer ! {ready, I, work(I, Steps), self()}, consumer(Steps);
    stop -> ok
  end.

buffer(_, _, _, _, _, 0, Sum) -> Sum;
buffer(Producers, Consumers, Items, Asked, Room, Left, Sum) ->
  {WaitingConsumers, LeftItems} = hand_out(Consumers, Items),
  {WaitingProducers, NowAsked} = ask_for(Producers, Asked, Room - queue:len(LeftItems)),
  receive
    {item, I, From} -> buffer(queue:in(From, WaitingProducers), WaitingConsumers, queue:in(I, LeftItems), NowAsked - 1, Room, Left, Sum);
    {ready, I, Worked, From} ->
      buffer(WaitingProducers, queue:in(From, WaitingConsumers), LeftItems, NowAsked, Room, Left - 1, Sum + I + Worked)
  end.

hand_out(Consumers, Items) ->
  case {queue:out(Consumers), queue:out(Items)} of
    {{{value, Who}, MoreConsumers}, {{value, I}, MoreItems}} -> Who ! {item, I, self()}, hand_out(MoreConsumers, MoreItems);
    _ -> {Consumers, Items}
  end.

ask_for(Producers, Asked, Room) when Asked >= Room -> {Producers, Asked};
ask_for(Producers, Asked, Room) ->
  case queue:out(Producers) of
    {{value, Who}, More} -> Who ! {produce, self()}, ask_for(More, Asked + 1, Room);
    _ -> {Producers, Asked}
  end.

% barber

customer(Street) ->
  receive
    {full, I} -> Street ! {full, I, self()}, customer(Street);
    {done, I, Worked} -> Street ! {done, I, Worked}
  end.

cutter(Steps) ->
  receive
    {enter, Who, I, Room} -> Who ! {done, I, work(I, Steps)}, Room ! next, cutter(Steps);
    stop -> ok
  end.

waiting_room(Barber, Chairs, Waiting, Sleeps) ->
  receive
    {enter, Who, I} ->
      case queue:len(Waiting) of
        Chairs -> Who ! {full, I}, waiting_room(Barber, Chairs, Waiting, Sleeps);
        _ when Sleeps -> next_customer(Barber, Chairs, queue:in({Who, I}, Waiting));
        _ -> waiting_room(Barber, Chairs, queue:in({Who, I}, Waiting), Sleeps)
      end;
    next -> next_customer(Barber, Chairs, Waiting);
    stop -> Barber ! stop
  end.

next_customer(Barber, Chairs, Waiting) ->
  case queue:out(Waiting) of
    {{value, {Who, I}}, More} -> Barber ! {enter, Who, I, self()}, waiting_room(Barber, Chairs, More, false);
    {empty, _} -> waiting_room(Barber, Chairs, Waiting, true)
  end.

street(_, 0, Sum) -> Sum;
street(Room, Left, Sum) ->
  receive
    {full, I, Who} -> Room ! {enter, Who, I}, street(Room, Left, Sum);
    {done, I, Worked} -> street(Room, Left - 1, Sum + I + Worked)
  end.

% bank

transactions(0, _, _, _) -> ok;
transactions(N, X, A, All) ->
  From = next(X),
  To = next(From),
  Amount = next(To),
  Target = (From rem A + 1 + To rem (A - 1)) rem A,
  element(1 + From rem A, All) ! {debit, 1 + Amount rem 100, element(1 + Target, All)},
  transactions(N - 1, Amount, A, All).

% An account that waits for the answer to its debit reads credits, and leaves other debits in its mailbox.
account(Teller, I, Balance) ->
  receive
    {debit, Amount, To} -> To ! {credit, Amount, self()}, waiting_account(Teller, I, Balance - Amount);
    {credit, Amount, From} -> From ! credited, account(Teller, I, Balance + Amount);
    stop -> Teller ! {balance, I * Balance}
  end.

waiting_account(Teller, I, Balance) ->
  receive
    {credit, Amount, From} -> From ! credited, waiting_account(Teller, I, Balance + Amount);
    credited -> Teller ! transferred, account(Teller, I, Balance)
  end.

% trapezoidal

height(X) -> math:sin(X * X * X - 1) / (X + 1) * math:sqrt(1 + math:exp(math:sqrt(2 * X))).

area(_, _, Pieces, Pieces, Sum) -> Sum;
area(From, Step, I, Pieces, Sum) ->
  X = From + I * Step,
  area(From, Step, I + 1, Pieces, Sum + Step * (height(X) + height(X + Step)) / 2).

% queens: a board is the list of the columns of its queens, the last row first

fits(Columns, Next) -> fits(Columns, Next, 1).
fits([], _, _) -> true;
fits([Each | More], Next, Rows) -> Each =/= Next andalso abs(Each - Next) =/= Rows andalso fits(More, Next, Rows + 1).

solutions(_, Size, Size) -> 1;
solutions(Columns, Row, Size) -> solutions(Columns, Row, Size, 0, 0).
solutions(_, _, Size, Size, Count) -> Count;
solutions(Columns, Row, Size, Next, Count) ->
  More = case fits(Columns, Next) of true -> solutions([Next | Columns], Row + 1, Size); false -> 0 end,
  solutions(Columns, Row, Size, Next + 1, Count + More).

queens_worker(Master, Size, Threshold) ->
  receive
    {board, Columns} when length(Columns) >= Threshold ->
      Master ! {solutions, solutions(Columns, length(Columns), Size), 0},
      queens_worker(Master, Size, Threshold);
    {board, Columns} ->
      Boards = [Master ! {board, [Next | Columns]} || Next <- lists:seq(0, Size - 1), fits(Columns, Next)],
      Master ! {solutions, 0, length(Boards)},
      queens_worker(Master, Size, Threshold);
    stop -> ok
  end.

queens_master(_, _, 0, Count) -> Count;
queens_master(Workers, Next, Open, Count) ->
  receive
    Board = {board, _} -> element(1 + Next rem tuple_size(Workers), Workers) ! Board, queens_master(Workers, Next + 1, Open, Count);
    {solutions, Found, Boards} -> queens_master(Workers, Next, Open + Boards - 1, Count + Found)
  end.

% sieve

filter(Main, Most, Primes, Size, Next) ->
  receive
    {candidate, N} ->
      case is_divided(N, Primes) of
        true -> filter(Main, Most, Primes, Size, Next);
        false when Size < Most -> filter(Main, Most, Primes ++ [N], Size + 1, Next);
        false when Next =:= none ->
          New = spawn_link(fun() -> filter(Main, Most, [], 0, none) end),
          New ! {candidate, N},
          filter(Main, Most, Primes, Size, New);
        false -> Next ! {candidate, N}, filter(Main, Most, Primes, Size, Next)
      end;
    {total, Before} when Next =:= none -> Main ! {sum, Before + lists:sum(Primes)};
    {total, Before} -> Next ! {total, Before + lists:sum(Primes)}
  end.

is_divided(_, []) -> false;
is_divided(N, [Each | _]) when N rem Each =:= 0 -> true;
is_divided(N, [_ | More]) -> is_divided(N, More).
