"""Operations on what dbzero makes of Python's collections, run there and here.

Each is done on collections of its own; what counts is its result or error, and what the collections hold afterwards.
"""

import collections
import copy
import datetime
import decimal
import functools
import io
import itertools
import json
import math
import operator
import statistics
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any, Final

SETUP: Final = """
xs=[3,1,2]
ys=[]
ns=[[1],{'k':[2]},(1,'x')]
ts=['b','a']
t=(1,2,1)
e=()
o=(5,)
tn=([1],'x')
d={'b':1,'a':[2],'c':True}
ed={}
di={3:'x',1:'y',2:None}
s={3,1,2}
es=set()
ss={'b','a','c'}
sw={'tea','milk'}
sm={'tea',1,None,2.5,1000,b'y',b'yy',True,''}
dd={'k':{'x':1},'e':{}}
dn={0:0,1:1,2:2,3:3,4:4,5:5}
sn={0,1,2,3,4,5}
"""

OPERATIONS: Final = tuple(
    r"""
xs[0]
xs[-1]
xs[3]
xs[-4]
xs[True]
xs[1.0]
xs['a']
xs[None]
xs[0:2]
xs[::-1]
xs[::2]
xs[5:]
xs[-2:]
type(xs[0:2]).__name__
xs[0]=9
xs[5]=9
xs[-1]=9
xs['a']=9
xs[0:1]=[7,8]
xs[0]=range(3)
xs[0]=2**63
xs[0]='a\0b'
xs[0]=[1,2]
del xs[0]
del xs[-1]
del xs[7]
del xs[0:1]
xs.append(4)
xs.append()
xs.append(1,2)
xs.append([1,(2,)])
xs.append(range(2))
xs.append(2**63)
xs.extend([4,5])
xs.extend((4,5))
xs.extend('ab')
xs.extend(5)
xs.extend([1,range(2),3])
xs.extend(x for x in [7,8])
xs.extend({1:2})
xs.extend()
xs.extend([2**63,5])
xs.extend(['\ud800',5,'a\0b'])
xs.pop()
xs.pop(0)
xs.pop(-1)
xs.pop(9)
xs.pop('a')
xs.pop(0,1)
xs.append(v=1)
d.get(k=1)
d.pop(key='b')
d.setdefault(key='b')
s.add(item=1)
s.union(other={1})
t.count(item=1)
xs.copy(x=1)
d.clear(x=1)
xs.append==xs.append
xs.append==ys.append
list(xs.append)
[0 for _ in d.items]
type(s.add).__name__
ys.pop()
xs.clear()
xs.copy()
type(xs.copy()).__name__
xs.count(1)
xs.count('q')
xs.count([1])
ns.count([1])
ns.count(ns[1])
ns.index(ns[2])
(xs.append(True),xs.count(1),xs.count(True),xs.index(True))
(xs.append(2.5),xs.count(2.5))
(xs.append(300),xs.count(300),xs.count(xs[3]))
(xs.append('kept'),xs.count('kept'))
(xs.append(''),xs.count(''),xs.index(''))
(xs.append(b'r'),xs.count(b'r'),xs.append(b'raw'),xs.count(b'raw'))
(xs.append(datetime.date(2026,1,2)),xs.count(datetime.date(2026,1,2)))
(xs.append('-'),xs.index('-'))
ts.index('a')
ts.index(ts[1])
(xs.append(7),xs.remove(3))
xs.index(1)
xs.index(9)
xs.index(1,1)
xs.remove(1)
xs.remove(9)
xs.remove()
xs.insert(0,1)
xs.sort()
xs.reverse()
xs+[1]
xs+xs
xs+(1,)
xs+5
xs+None
xs+'ab'
type(xs+[1]).__name__
(0,)+xs
5+xs
xs*2
2*xs
xs*0
xs*-1
xs*'a'
xs*1.5
type(xs*2).__name__
xs==[3,1,2]
xs==[3,1]
xs!=[3,1,2]
xs!=[3,1]
xs==(3,1,2)
xs==xs
xs!=xs
xs==ys
xs!=ys
ys!=xs
xs!=xs+[1]
xs==xs+[1]
xs+[1]!=xs
xs!=(xs+[1])[0:3]
xs!=xs.copy()
xs==xs.copy()
xs==None
xs==5
xs=='a'
ts==['b','a']
ns==[[1],{'k':[2]},(1,'x')]
[[1],{'k':[2]},(1,'x')]==ns
xs<xs
xs<[4]
[4]<xs
xs is xs
ns[0] is ns[0]
1 in xs
9 in xs
[1] in ns
len(xs)
len(ys)
bool(xs)
bool(ys)
not ys
repr(xs)
str(xs)
repr(ns)
str(ns)
repr(ts)
repr(tn)
repr(t)
repr(e)
repr(o)
repr(d)
repr(di)
repr(s)
repr(es)
repr(ss)
str(ss)
f'{xs}'
format(xs)
format(xs,'>5')
format(xs,'')
'%s'%xs
'%d'%xs
'%s %s'%t
'%s'%t
'%(b)s'%d
sorted(xs)
sorted(xs,reverse=True)
sorted(ts)
sorted(s)
sorted(d)
sorted(t)
list(xs)
list(t)
list(d)
list(s)
list(ss)
tuple(xs)
tuple(t)
set(xs)
set(s)
set(t)
dict(d)
list(reversed(xs))
list(reversed(t))
list(reversed(d))
reversed(s)
list(enumerate(xs))
list(zip(xs,t))
list(map(str,xs))
sum(xs)
sum(t)
sum(s)
max(xs)
min(t)
max(ss)
any(xs)
all(xs)
sum(xs,start=1)
''.join(ts)
','.join(ss)
','.join(d)
next(iter(xs))
hash(xs)
hash(d)
hash(s)
hash(t)
{t:1}
{xs:1}
[*xs,*t]
{**d}
dict(**d)
a,*b=xs; print(a,b)
a,b,c=t; print(a,b,c)
a,b=t
a,b=xs
(lambda *q: q)(*xs)
(lambda **q: sorted(q))(**d)
isinstance(xs,list)
isinstance(d,dict)
isinstance(t,tuple)
isinstance(s,set)
json.dumps(xs)
json.dumps(d)
json.dumps(t)
json.dumps([xs])
json.dumps(list(xs))
json.dumps(dict(d))
copy.copy(xs)
copy.deepcopy(xs)
t[0]
t[-1]
t[3]
t[-4]
t['a']
t[0:1]
t[True]
t[1.5]
t[0]=1
del t[0]
t+(1,)
t+t
(1,)+t
t*2
2*t
t==(1,2,1)
t==[1,2,1]
t==t
t!=t
t!=(1,2,1)
t!=(1,2)
t==o
t!=o
e==()
e!=t
t<t
t<(3,)
(1,2,1)==t
(1,2)!=t
tn==([1],'x')
1 in t
9 in t
len(t)
t.count(1)
t.count(9)
t.count(True)
tn.index(tn[0])
t.index(1)
t.index(9)
t.index(1,1)
t.index()
bool(e)
bool(t)
type(tn[0]).__name__
tn[0].append(3)
d['b']
d['q']
d[5]
d[1.5]
d[None]
d[-1]
d[(1,)]
di[1]
di[-1]
di[True]
di[1.0]
di[2**63]
di[2**64]
di.get(2**64)
2**64 in di
di.pop(-2**70,1)
di.__setitem__(2**63,'x')
di.__setitem__(2**64,'x')
(d.__setitem__('more',{'a':1,-1:2,'c':3}))
(d.__setitem__('more',{2**63:'x','b':1,2**64:'y'}))
d.__setitem__('\ud800',1)
d['new']=5
d['b']=6
d[-1]=1
d[5]=1
d[None]=1
d[1.5]=2
d[(1,2)]=3
d[[1]]=3
d['x']=range(2)
d['x']=2**63
d['x']=[1,{'y':2}]
d['a\0b']=1
d['']=1
d[True]=1
d[0]=1
d[b'k']=1
d[{1}]=1
d[datetime.date(2020,1,1)]=1
d[decimal.Decimal('1.5')]=1
del d['b']
del d['q']
del d[5]
d.get('b')
d.get('q')
d.get('q',7)
d.get()
d.get(-1)
d.get([1])
d.pop('b')
d.pop('q')
d.pop('q',7)
d.pop('q',None)
d.pop()
d.popitem()
d.setdefault('b',9)
d.setdefault('q',9)
d.setdefault('q')
d.setdefault('q',[1])
d.setdefault('q',range(1))
d.update({'z':1,'b':5})
d.update(z=1)
d.update([('z',1)])
d.update(5)
d.update({'z':range(2)})
d.update({'y':1},z=2)
d.update()
d.update(di)
d.update(None)
d.clear()
d.copy()
type(d.copy()).__name__
d.fromkeys(['a'],1)
list(d.keys())
list(d.values())
list(d.items())
sorted(d.items(), key=str)
len(d.keys())
len(d.items())
len(d.values())
'b' in d.keys()
('b',1) in d.items()
1 in d.values()
d.keys()&{'b'}
d.keys()|{'q'}
d.keys()=={'a','b','c'}
[k for k in d]
[k for k in d.keys()]
{k:v for k,v in d.items()}
for k,v in d.items(): print(k,v)
for k in d: print(k)
max(d)
max(di)
max(di.items())
'b' in d
'q' in d
5 in d
-1 in d
None in d
[1] in d
d=={'b':1,'a':[2],'c':True}
d=={'b':1}
d!={'b':1,'a':[2],'c':True}
d!={'b':1}
d==d
d!=d
d==di
d!=di
d==d.copy()
d!=d.copy()
d==[1]
d==None
{'b':1,'a':[2],'c':True}==d
d|{'x':1}
{'x':1}|d
d<d
len(d)
bool(ed)
bool(d)
not d
d['a'].append(3)
di[1]+'x'
di.get(1)
d.__contains__('b')
s.add(5)
s.add(1)
s.add('x')
s.add(-1)
s.add(-5)
s.add(range(2))
s.add([1])
s.add((1,2))
s.add(None)
s.add(2**63)
s.add(2**64)
s.update([2**63,-1,5])
s.update([9,range(2),8])
s.union([2**63,9])
s.union([-1,9])
d.update({'z':2**63,'y':1})
d.update({2**64:1,'y':1})
d.update(z=2**63,y=range(2),x=5)
d.update({'z':range(2),'y':1})
d.setdefault('new',2**63)
s.add('\ud800')
s.add({1})
s.add(frozenset([1]))
s.add()
s.add(1.5)
s.add('a\0b')
s.add({'a':1})
s.remove(1)
s.remove(9)
s.remove('q')
s.remove(-1)
s.discard(1)
s.discard(9)
s.discard(-1)
s.pop()
ss.pop()
es.pop()
s.clear()
s.update([7,8])
s.update({7},{8})
s.update('ab')
s.update(5)
s.update()
s.update([range(2)])
s.copy()
type(s.copy()).__name__
s.union({5})
s.union([5],[6])
s.union()
s.union(5)
type(s.union({5})).__name__
s.intersection({1})
s.intersection([1,2])
s.intersection()
type(s.intersection({1})).__name__
s.difference({1})
s.difference([1])
s.difference({1},{2})
s.symmetric_difference({1,9})
s.issubset({1,2,3,4})
s.issubset([1,2,3])
s.issuperset({1})
s.issuperset([1])
s.isdisjoint({9})
s.isdisjoint([1])
s.difference_update({1})
s.intersection_update({1})
s.symmetric_difference_update({1})
s|{5}
s&{1}
s-{1}
s^{1,9}
{5}|s
{1}&s
{1,9}-s
s|s
s&s
s-s
s^s
s|[1]
s-[1]
type(s|{5}).__name__
type({5}|s).__name__
type(s&{1}).__name__
type(s-{1}).__name__
s=={1,2,3}
s!={1,2,3}
s=={1}
s!={1}
s==s
s!=s
s==s.copy()
s!=s.copy()
s=={1,2,3,4}
s==frozenset([1,2,3])
s==[1,2,3]
s==es
s!=es
{1,2,3}==s
{1}!=s
s<{1,2,3,4}
s<={1,2,3}
s>{1}
s>=s
s<s
s<=s
s>s
{1}<s
{1}<=s
s<[1]
1 in s
9 in s
-1 in s
'q' in s
[1] in s
len(s)
bool(es)
ss=={'a','b','c'}
[x for x in ss]
[x for x in s]
{x for x in s}
q=xs; q+=[4]; print(q, xs)
q=xs; q*=2; print(q, xs)
q=xs; q+='ab'; print(q, xs)
q=xs; q+=5; print(q, xs)
q=t; q+=(4,); print(q, t)
q=d; q|={'x':1}; print(q, d)
q=s; q|={4}; print(q, s)
q=s; q-={1}; print(q, s)
q=s; q&={1}; print(q, s)
q=s; q^={1,8}; print(q, s)
q=s; q|=[4]; print(q, s)
q=[0]; q.extend(xs); print(q)
q=[0]; q.extend(t); print(q)
q={}; q.update(d); print(q)
q={1}; q.update(xs); print(q)
q={'x':1}; q|=d; print(q)
xs.x
xs.x=1
d.x
t.x
s.x
list(d.keys())[0]
d.keys()[0]
collections.Counter(xs)
collections.Counter(t)
collections.Counter(d)
statistics.mean(xs)
math.prod(xs)
list(itertools.chain(xs,t))
list(itertools.islice(xs,2))
functools.reduce(lambda a,b:a+b,xs)
list(filter(None,xs))
[xs,t]
[xs]+[t]
{'k':xs}
(xs,)
xs and 1
xs or 1
ys or 1
ed or 1
e or 1
range(*xs)
print(*t)
print(xs,t,d,s)
print(ns,tn,di)
str.join(',',ts)
'-'.join(t)
bytes(xs)
bytearray(xs)
xs.__len__()
ns[1]['k'].append(5); print(ns)
ns[0]+=[2]
ns[1]['k']+=[2]
d['a']+=[3]
d['b']+=1
xs[0]+=10
del ns[1]['k']
ns[2][0]
ns[1].get('k')
for x in xs: xs.append(1) if len(xs)<6 else None
for k in d: d['zz']=1
for x in s: s.add(99)
for k in list(d): del d[k]
operator.itemgetter(0)(xs)
operator.itemgetter('b')(d)
operator.concat(xs,[1])
operator.contains(xs,1)
xs.__add__([1])
s.__or__({9})
sw&sw
sw&{'tea'}
{'tea'}&sw
{'tea','rye'}&sw
sw.intersection(['tea'])
sw.intersection()
sw.isdisjoint({'tea'})
sw-{'tea'}
sw|{'rye'}
sw^{'tea'}
sw<={'tea','milk'}
sw.issuperset(['tea'])
(sw.__iand__({'tea'}),sw)
ss&ss
ss&ss.copy()
ss.intersection('cb')
ss.intersection(chr(99))
ss.intersection(['c'])
s&{3,1}
s.intersection([3,1])
s.intersection([1,3])
s.intersection([1,3],[3])
s.intersection([1,3],[3],[1])
s.intersection([1000,1])
s.intersection([[1],3])
s.intersection({1:2})
s.intersection(x for x in (1,2))
s.intersection(5)
s.intersection(None)
s&[1]
sm&{1}
sm&{True}
sm&{''}
sm.intersection([None])
sm.intersection([1])
sm.intersection([1000])
sm.intersection([b'y'])
dd==dd
dd=={'k':{'x':1},'e':{}}
dd==dict(dd)
dict(dd)==dd
dd!=dict(dd)
dd['k']==dd['k']
dd['k']!=dd['k']
dd['e']==dd['e']
dd['e']!=dd['e']
dd['e']==ed
dd['k']=={'x':1}
dd=={'k':dd['k'],'e':{}}
dd=={'k':dict(dd['k']),'e':{}}
[dd['k']]==[dd['k']]
dd['k'] in [dd['k']]
for k in dn: print(k,dn.pop(k))
for k in dn: print(k,k==2 and dn.pop(3))
for k in dn: print(k,k==0 and dn.pop(3))
for k in dn: print(k,k==2 and dn.pop(1))
for k in dn: print(k,k==2 and dn.clear())
for k in dn: print(k,k<20 and dn.update({k+3:1}))
for k in dn: print(k,k==5 and dn.update({7:1}))
for k in dn: print(k,k<500 and dn.update({k+100:dn.pop(k)}))
for k in dn: print(k,dn.update({k:1}))
for k in dn.keys(): print(k,dn.update({k:1}))
for k,v in dn.items(): print(k,dn.update({k:v+1}))
for k in d: print(k,d.update({k+'s':d.pop(k)})) if len(k)<3 else None
for k in sn: print(k,sn.discard(k))
for k in sn: print(k,k==2 and sn.discard(3))
for k in sn: print(k,k==0 and sn.discard(3))
for k in sn: print(k,k<20 and sn.add(k+3))
for k in sn: print(k,k==5 and sn.add(7))
for k in sn: print(k,k==2 and sn.clear())
(it:=iter(dn),next(it),dn.pop(1),next(it,'end'))[1:]
(it:=iter(dn),dn.pop(0),next(it,'end'))[1:]
(it:=iter(dn),dn.pop(1),next(it,'end'),next(it,'end'))[1:]
(it:=iter(ed),ed.update(a=1),list(it))[1:]
(it:=iter(sn),sn.discard(0),next(it,'end'))[1:]
(it:=iter(es),es.add(1),list(it))[1:]
(d.update({0:5,'':6}),list(d))
(d.update({'':6,0:5}),list(d))
(d.update({'':6,b'':7,0:5,():8,0.0:3}),list(d.items()))
(ed.update({'':6,b'':7,0:5,():8}),list(ed.items()))
(ed.update({():8,'':6,b'':7,0:5}),list(ed.items()))
(ed.update({(0,0):8,(0,):9}),list(ed.items()))
(ed.update({(1,2):8,3:9}),list(ed.items()))
(ed.update({3:9,(1,2):8}),list(ed.items()))
(ed.update({(1,2):8,3:9}),ed.pop(3),list(ed.items()))
(ed.update({(1,2):8,3:9}),ed.pop((1,2)),list(ed.items()))
(ed.update({(1,2):8,(2,1):9}),list(ed.items()))
(ed.update({(2,1):8,(1,2):9}),list(ed.items()))
(ed.update({(2,1):8,(1,2):9}),ed.pop((1,2)),list(ed.items()))
(ed.update({(1,2):8,(2,1):9}),ed.pop((1,2)),list(ed.items()))
(ed.update({(2,1):8,(1,2):9}),ed.pop((2,1)),list(ed.items()))
(ed.update({(2,1):8}),ed.pop((1,2)),list(ed.items()))
(ed.update({(2,1):8}),ed.pop((1,2),7),list(ed.items()))
(ed.update({0:8}),ed.pop(''),list(ed.items()))
(ed.update({'':8}),ed.pop(0),list(ed.items()))
(ed.update({'':8}),ed.pop(0,4),list(ed.items()))
(ed.update({'':8}),ed.get(0,4),list(ed.items()))
(ed.update({'':8}),ed.setdefault(0,4),list(ed.items()))
(ed.update({'':8,0:2}),ed.pop(''),list(ed.items()))
(ed.update({'':8,0:2}),ed.pop(0),list(ed.items()))
(ed.update({'':8,b'':2}),ed.pop(b''),list(ed.items()))
(ed.update({b'':8,'':2}),list(ed.items()))
(ed.update({0.0:8,'':2}),list(ed.items()))
(ed.update({'':8,0.0:2}),list(ed.items()))
(ed.update({datetime.date(1,1,1):8,545:2}),list(ed.items()))
(ed.update({545:2,datetime.date(1,1,1):8}),list(ed.items()))
(es.update(['',0]),list(es))
(es.update([(2,1),(1,2)]),list(es))
(es.update([(1,2),(2,1)]),list(es))
(es.update([(1,2),3]),list(es))
(es.update([(1,2),3]),es.remove(3),list(es))
(es.update([(1,2),3]),es.remove((1,2)),list(es))
(es.update(['',0]),es.remove(''),list(es))
(es.update(['']),es.remove(0),list(es))
(es.update(['']),es.discard(0),list(es))
(es.update(['',0]),es.pop(),list(es))
d.setdefault(-3,1)
ed.setdefault(-3,1)
di.setdefault(-3,1)
d.setdefault(2**64,1)
d.setdefault(2**63,1)
d.setdefault([1],1)
d.setdefault({1},1)
d.setdefault({1:1},1)
d.setdefault(xs,1)
d.setdefault(s,1)
d.setdefault(ed,1)
d.setdefault(t,1)
d.setdefault((1,[2]),1)
d.setdefault((1,-2),1)
del d[-3]
del ed[-3]
del d[2**64]
del d[2**63]
del d[[1]]
del d[{1:1}]
del d[{1}]
del d[xs]
del d[s]
del d[(1,[2])]
del d[(-1,)]
del d['nope']
(ed.update({-1.0:8}),list(ed.items()))
d.get(-3)
d.get(-3,1)
d.get(2**64)
d.pop(-3)
d.pop(-3,1)
ed.pop(-3)
ed.pop(-3,1)
-3 in d
-3 in ed
d[-3]
ed[-3]
d.update({():1,-3:2})
es.update({(),-3})
es.update([(),-3])
es.update([-3])
es.update([-3,'a'])
es.update(['a',-3])
es.update([(),-3,4])
es.update([-3,-4])
es.update([-3,()])
es.add(-3)
es.add(2**64)
es.update(['a',2**64])
es.update([(),2**64])
(es.add(()),es.add(-3))
(es.add(()),es.add(-3),es.add(4))
s.add(-3)
s.discard(-3)
ss.discard(-3)
es.discard(-3)
(s.add(-3),s.discard(-3))
s.remove(-3)
ss.remove(-3)
-3 in s
-3 in ss
-3 in es
es.update([True,1])
es.update([1,True])
es.update([1.0,1])
es.update([1,1.0])
es.update([True,1.0,1])
es.update([0,False])
es.update([(1,),(True,)])
(es.add(1),es.add(True))
s.add(True)
s.update([True])
s.update({True})
s|{True}
s&{True}
(ed.update({True:1}),ed.update({1:2}))
(ed.update({1:1}),ed.update({True:2}))
(ed.update({1:1}),ed.update({1.0:2}))
(ed.update({1.0:1}),ed.update({1:2}))
di[True]=5
di[1.0]=5
di.update({True:5})
di.setdefault(True,5)
""".strip().splitlines()
)

MODULES: Final = (
    collections, copy, datetime, decimal, functools, itertools, json, math, operator, statistics,
)  # fmt: skip


def stored_values(store: Callable[[dict[str, Any]], dict[str, Any]]) -> dict[str, Any]:
    """Return the collections as they come back from a store."""
    made: dict[str, Any] = {}
    exec(SETUP, made)
    return store({name: value for name, value in made.items() if name != "__builtins__"})


def outcome(operation: str, values: dict[str, Any]) -> list[Any]:
    """Do one operation; return what it gave, and the collections that are not as before, as texts."""
    before = {name: repr(value) for name, value in values.items()}
    namespace = {**values, **{module.__name__: module for module in MODULES}}
    told = io.StringIO()
    with redirect_stdout(told):
        result = _done(operation, namespace)
    after = {name: repr(value) for name, value in values.items()}
    return [result + told.getvalue(), {name: text for name, text in after.items() if text != before[name]}]


def _done(operation: str, namespace: dict[str, Any]) -> str:
    try:
        try:
            code = compile(operation, "<operation>", "eval")
        except SyntaxError:
            exec(compile(operation, "<operation>", "exec"), namespace)
            return ""
        return _shown(eval(code, namespace))
    except Exception as error:  # noqa: BLE001  # whatever the collection raises is what is compared
        return f"{type(error).__name__}: {error}"


def _shown(value: Any) -> str:
    if isinstance(value, set):
        # Python's order of texts changes from process to process.
        return f"set {sorted(value, key=repr)}"
    return f"{type(value).__name__} {value!r}"
